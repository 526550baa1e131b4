/** Section 4.2: which windows are valid, and which are refused. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-valid-windows.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
