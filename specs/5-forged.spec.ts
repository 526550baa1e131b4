/** Section 5: tokens that somebody else signed. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './5-forged.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
