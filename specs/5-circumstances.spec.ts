/** Sections 5 and 7.2: who may not ask is refused in whatever circumstances. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './5-circumstances.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
