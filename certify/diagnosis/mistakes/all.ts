/** All known kinds of mistake. */
import { access, tokenEndpoint } from './access.ts';
import { answers, environment, refusals } from './answers.ts';
import type { Features } from '../features.ts';
import type { Mistake } from './mistake.ts';
import { paging, windows } from './paging.ts';

interface Kind extends Mistake {
  readonly name: string;
  /** Not of the implementation itself. */
  readonly isOutside: boolean;
}

const OF_SERVICES = { ...paging, ...windows, ...answers, ...access, ...tokenEndpoint, ...refusals };

export const MISTAKES: readonly Kind[] = [OF_SERVICES, environment].flatMap((kinds) =>
  Object.entries<Mistake>(kinds).map(([name, kind]) => ({ name, ...kind, isOutside: kinds === environment })),
);

/** What is wrong is the kind of answer, so that kinds with other words are untrue. */
const OF_ANSWER = /^(answered|no answer)|^got: a broken connection/m;

/**
 * The kinds of mistake that break a requirement: those whose words its failures contain first, then the most
 * frequent. Kinds with other words only if there are no more likely ones, and the answers are of the right kind. Causes
 * in the environment come after matching ones, and only if a word suggests them.
 */
export function kindsOf(id: string, features: Features): readonly Kind[] {
  const shown = [...features].join('\n');
  const kinds = MISTAKES.flatMap((kind) => {
    const place = kind.breaks.split(' ').indexOf(id);
    const fits = kind.when?.test(shown);
    if (place < 0 || (kind.isOutside && fits === false)) return [];
    return [{ kind, fits, rank: place + (kind.isOutside ? 50 : fits ? -100 : 0) }];
  });
  const isLikely = OF_ANSWER.test(shown) || kinds.some(({ kind, fits }) => !kind.isOutside && fits !== false);
  return kinds
    .filter(({ fits }) => !isLikely || fits !== false)
    .sort((a, b) => a.rank - b.rank)
    .map(({ kind }) => kind);
}
