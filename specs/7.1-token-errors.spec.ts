/** Section 7.1: what the token endpoint refuses, and how. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './7.1-token-errors.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
