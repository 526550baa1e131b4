/** Section 9: the version in the path. */
import { about, test } from '../fixtures/test.ts';
import { walksOfSeveralPages } from '../engine/run/walk/standard-walks.ts';

test('next stays under /v1', about('9-prefix', { access: 'reads' }), ({ kit }) => walksOfSeveralPages(kit));
