/** Section 2.1: the token response. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './2.1-token-response.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
