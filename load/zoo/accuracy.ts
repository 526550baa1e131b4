/**
 * Accuracy benchmark: runs the estimators in virtual time against simulated servers with known truths, drawn by a
 * seed. `npm run load -- accuracy` prints the table; the tests run a few servers of each family.
 */
import { randomSource } from '../estimate/random.ts';
import { textTable } from '../scenarios/format.ts';
import { CAPACITY_SERVERS } from './capacities.ts';
import { DEPTH_SERVERS } from './depths.ts';
import { LIMITER_SERVERS } from './limiters.ts';
import type { Draw, Judged, ZooServer } from './targets.ts';

const ZOO = { ...CAPACITY_SERVERS, ...LIMITER_SERVERS, ...DEPTH_SERVERS } satisfies Record<string, Draw>;
type Family = keyof typeof ZOO;
export const FAMILIES = Object.keys(ZOO) as Family[];

interface Row extends Omit<ZooServer, 'judge'>, Judged {
  readonly family: Family;
}

/** Draws a server of a family and judges the estimate for it. Same seed, same server. */
export async function judgeServer(family: Family, index: number, seed: number): Promise<Row> {
  const random = randomSource((seed * 97 + FAMILIES.indexOf(family)) * 7919 + index);
  const { judge, ...named } = ZOO[family](index, random, seed * 100 + index);
  return { family, ...named, ...(await judge()) };
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const MAX_WRONG_SHARE = 0.02;
const MAX_UNDECIDED_SHARE = 0.25;

/**
 * Lists the estimates that are not right (or all), and one summary row per family. `ok`: the shares of wrong and
 * undecided estimates are within their limits.
 */
export function accuracyTable(rows: readonly Row[], all: boolean): { text: string; ok: boolean } {
  const shown = rows.filter(({ verdict }) => all || verdict !== 'right');
  const details = shown.map(
    ({ family, name, truth, found, verdict }) => `${verdict}: ${family}: ${name}: ${truth}, found ${found}\n`,
  );
  const families = [...new Set(rows.map(({ family }) => family))].map((family) =>
    rows.filter((row) => row.family === family),
  );
  const summary = textTable(
    ['family', 'servers', 'right', 'undecided', 'wrong', 'median error', 'worst of the right', 'longest s'],
    [...families, ...(families.length > 1 ? [rows] : [])].map((some) => {
      const count = (verdict: Judged['verdict']): number =>
        some.filter((row) => row.verdict === verdict).length;
      const errors = some
        .filter(({ verdict, error }) => verdict === 'right' && error !== undefined)
        .map(({ error }) => Math.abs(error!))
        .sort((a, b) => a - b);
      return [
        some === rows ? 'all' : some[0]!.family,
        some.length,
        count('right'),
        count('undecided'),
        count('wrong'),
        errors.length === 0 ? '' : percent(errors[errors.length >> 1]!),
        errors.length === 0 ? '' : percent(errors.at(-1)!),
        Math.max(...some.map(({ seconds = 0 }) => seconds)) || '',
      ];
    }),
  );
  const share = (verdict: Judged['verdict']): number =>
    rows.filter((row) => row.verdict === verdict).length / rows.length;
  return {
    text: `${details.join('')}${summary}`,
    ok: share('wrong') <= MAX_WRONG_SHARE && share('undecided') <= MAX_UNDECIDED_SHARE,
  };
}
