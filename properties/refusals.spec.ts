/** Laws of refusals. */
import { about, test } from '../fixtures/test.ts';
import { REFUSAL_LAWS } from './refusals.ts';

for (const law of REFUSAL_LAWS) test(law.title, about(law.ids, law), ({ kit }) => law.run(kit));
