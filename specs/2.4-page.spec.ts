/** Section 2.4: the page. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './2.4-page.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
