/** Section 7.2, behind everything else: the rate limit, where there is leave to provoke it, and a failing server. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './7.2-limits-and-failure.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
