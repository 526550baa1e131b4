/** Sections 2.3, 2.4 and 4.2: pages in whatever circumstances. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-circumstances.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
