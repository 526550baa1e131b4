/** Section 5: whose screenings a token opens. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './5-tenants.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
