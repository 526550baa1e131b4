/** Section 5: how a request says who asks. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './5-authentication.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
