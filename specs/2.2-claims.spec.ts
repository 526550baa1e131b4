/** Section 2.2: the claims of the access token. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './2.2-claims.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
