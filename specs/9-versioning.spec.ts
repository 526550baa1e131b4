/** Section 9: the version in the path. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './9-versioning.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
