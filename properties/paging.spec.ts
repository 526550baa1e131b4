/** Laws of paging. */
import { details, test } from '../fixtures/test.ts';
import { PAGING_LAWS } from './paging.ts';

for (const law of PAGING_LAWS) {
  test(law.name, details(law), ({ prove }) => prove(law));
}
