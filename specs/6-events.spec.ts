/** Section 6: the captured events of the tenant's queue against what REST returns. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './6-events.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
