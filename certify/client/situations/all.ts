/** All situations, in the order of the report. */
import type { Situation } from '../situation.ts';
import { eventSituations } from './events.ts';
import { failureSituations } from './failures.ts';
import { pagesSituations, plainWalk } from './pages.ts';
import { refusalSituations } from './refusals.ts';
import { tokenSituations } from './tokens.ts';

export { plainWalk };

export const SITUATIONS: readonly Situation[] = [
  plainWalk,
  ...pagesSituations,
  ...tokenSituations,
  ...failureSituations,
  ...refusalSituations,
  ...eventSituations,
];
