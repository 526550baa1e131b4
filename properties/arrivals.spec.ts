/** Laws of paging while data arrives. */
import { details, test } from '../fixtures/test.ts';
import { ARRIVAL_LAWS } from './arrivals.ts';

for (const law of ARRIVAL_LAWS) {
  test(law.name, details(law), ({ prove }) => prove(law));
}
