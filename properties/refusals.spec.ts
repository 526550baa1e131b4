/** Laws of refusals. */
import { details, test } from '../fixtures/test.ts';
import { REFUSAL_LAWS } from './refusals.ts';

for (const law of REFUSAL_LAWS) {
  test(law.name, details(law), ({ prove }) => prove(law));
}
