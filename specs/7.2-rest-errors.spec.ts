/** Section 7.2: what the REST API refuses, and how. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './7.2-rest-errors.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
