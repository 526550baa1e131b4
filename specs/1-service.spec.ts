/** Section 1: the service only reads. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './1-service.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
