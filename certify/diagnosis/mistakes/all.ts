/** All known kinds of mistake. */
import { access, tokenEndpoint } from './access.ts';
import { answers, refusals } from './answers.ts';
import { environment } from './environment.ts';
import type { Features } from '../features.ts';
import type { Mistake } from './mistake.ts';
import { paging, windows } from './paging.ts';

export const MISTAKES: readonly Mistake[] = [
  ...paging,
  ...windows,
  ...answers,
  ...access,
  ...tokenEndpoint,
  ...refusals,
  ...environment,
];

/**
 * The kinds of mistake that break a requirement: those that match the features of its failures first, then the most
 * frequent. Causes in the environment come after matching ones, and only if a feature suggests them.
 */
export function kindsOf(id: string, features: Features): readonly Mistake[] {
  const shown = [...features].join('\n');
  return MISTAKES.flatMap((mistake) => {
    const place = mistake.breaks.split(' ').indexOf(id);
    const fits = mistake.when?.test(shown);
    const isOutside = environment.includes(mistake);
    if (place < 0 || (isOutside && fits === false)) return [];
    return [{ mistake, rank: place + (isOutside ? 50 : fits === undefined ? 0 : fits ? -100 : 100) }];
  })
    .sort((a, b) => a.rank - b.rank)
    .map(({ mistake }) => mistake);
}
