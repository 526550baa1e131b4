/** Section 4.2: page sizes, order, and following next. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.2-paging.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
