/** Section 5: tokens that are not the issuer's, or no longer valid. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './5-tokens.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
