/** Section 4.2, rule 3: tenants are never mixed. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-one-tenant.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
