/** Every kind of mistake that is known, and which fault is of which. */
import { access } from './access.ts';
import { answers } from './answers.ts';
import type { Mistake } from './mistake.ts';
import { paging } from './paging.ts';
import { refusals } from './refusals.ts';
import { tokenEndpoint } from './token-endpoint.ts';
import { windows } from './windows.ts';

export const MISTAKES: readonly Mistake[] = [
  ...paging,
  ...windows,
  ...answers,
  ...access,
  ...tokenEndpoint,
  ...refusals,
];

const byFault = new Map(
  MISTAKES.flatMap((mistake) => mistake.faults.map((name) => [name, mistake] as const)),
);

/** The kind of mistake that a fault is. */
export const mistakeOf = (fault: string): Mistake | undefined => byFault.get(fault);
