/** All situations, in the order of the report. */
import type { Situation, SituationRow } from '../situation.ts';
import { eventSituations } from './events.ts';
import { failureSituations } from './failures.ts';
import { pagesSituations, plainWalk } from './pages.ts';
import { refusalSituations } from './refusals.ts';
import { tokenSituations } from './tokens.ts';

const ROWS: readonly SituationRow[] = [
  plainWalk,
  ...pagesSituations,
  ...tokenSituations,
  ...failureSituations,
  ...refusalSituations,
  ...eventSituations,
];

export const SITUATIONS: readonly Situation[] = ROWS.map((row) => ({ level: 'MUST', ...row }));
