/** Section 4.2: which screenings a window selects. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-window.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
