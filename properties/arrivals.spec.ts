/** Laws of arrivals. */
import { about, test } from '../fixtures/test.ts';
import { ARRIVAL_LAWS } from './arrivals.ts';

for (const law of ARRIVAL_LAWS) test(law.title, about(law.ids, law), ({ kit }) => law.run(kit));
