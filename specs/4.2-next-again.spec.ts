/** Section 4.2: the same next again. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-next-again.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
