/** Laws of paging. */
import { about, test } from '../fixtures/test.ts';
import { PAGING_LAWS } from './paging.ts';

for (const law of PAGING_LAWS) test(law.title, about(law.ids, law), ({ kit }) => law.run(kit));
