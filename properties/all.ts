/** Every property as a check. */
import { takeCollected } from '../fixtures/test.ts';
import './paging.spec.ts';
import './windows.spec.ts';
import './refusals.spec.ts';
import './token-refusals.spec.ts';
import './arrivals.spec.ts';

export const PROPERTIES = takeCollected();
