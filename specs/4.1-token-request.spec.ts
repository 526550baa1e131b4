/** Section 4.1: the request that earns a token. */
import { details, test } from '../fixtures/test.ts';
import { probes } from './4.1-token-request.ts';

for (const probe of probes) {
  test(probe.name, details(probe), ({ prove }) => prove(probe));
}
