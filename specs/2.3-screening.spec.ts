/** Section 2.3: the screening object. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './2.3-screening.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
