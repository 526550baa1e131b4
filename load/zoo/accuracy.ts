/**
 * Accuracy benchmark: runs the estimators in virtual time against simulated servers with known truths, drawn by a
 * seed. `npm run load -- accuracy` prints the table; the tests run a few servers of each family.
 */
import { setImmediate } from 'node:timers/promises';
import { UsageError } from '../../engine/errors.ts';
import { ascending, largest, percent, quantile } from '../estimate/numbers.ts';
import { randomSource } from '../estimate/random.ts';
import { CAPACITY_SERVERS } from './capacities.ts';
import { DEPTH_SERVERS } from './depths.ts';
import { LIMITER_SERVERS } from './limiters.ts';
import type { DrawServer, Judged, ZooServer } from './targets.ts';

const ZOO = { ...CAPACITY_SERVERS, ...LIMITER_SERVERS, ...DEPTH_SERVERS } satisfies Record<
  string,
  DrawServer
>;
type Family = keyof typeof ZOO;
export const FAMILIES = Object.keys(ZOO) as Family[];

interface Row extends Omit<ZooServer, 'judge'>, Judged {
  readonly family: Family;
}

/** Draws a server of a family and judges the estimate for it. Same seed, same server. */
export async function judgeServer(family: Family, index: number, seed: number): Promise<Row> {
  const random = randomSource((seed * 97 + FAMILIES.indexOf(family)) * 7919 + index);
  const { judge, ...named } = ZOO[family](random, index, seed * 100 + index);
  return { family, ...named, ...(await judge()) };
}

const MAX_WRONG_SHARE = 0.02;
const MAX_UNDECIDED_SHARE = 0.25;

/**
 * Judges servers of some families, by default of all. Prints the estimates that are not right (or all), and a row per
 * family. Returns whether the shares of wrong and undecided estimates are within their limits. Throws a UsageError, and an
 * AbortError after the server in progress.
 */
export async function accuracy(
  given: readonly string[],
  { servers, seed, all = false }: { servers: number; seed: number; all?: boolean },
  signal?: AbortSignal,
): Promise<boolean> {
  const unknown = given.find((name) => !(name in ZOO));
  if (unknown) throw new UsageError(`no family "${unknown}"; the families are ${FAMILIES.join(', ')}`);
  const families = given.length > 0 ? (given as Family[]) : FAMILIES;
  const rows: Row[] = [];
  for (const family of families)
    for (let index = 0; index < servers; index += 1) {
      const row = await judgeServer(family, index, seed);
      const { name, truth, found, verdict } = row;
      if (all || verdict !== 'right') console.log(`${verdict}: ${family}: ${name}: ${truth}, found ${found}`);
      rows.push(row);
      // Otherwise nothing else runs, such as the handler of Ctrl-C.
      await setImmediate(undefined, signal && { signal });
    }
  const summary = (some: readonly Row[]) => {
    const of = (verdict: Judged['verdict']): Row[] => some.filter((row) => row.verdict === verdict);
    const errors = ascending(
      of('right').flatMap(({ error }) => (error === undefined ? [] : Math.abs(error))),
    );
    return {
      servers: some.length,
      right: of('right').length,
      undecided: of('undecided').length,
      wrong: of('wrong').length,
      'median error': percent(quantile(errors, 0.5) || 0),
      'worst of the right': percent(errors.at(-1) ?? 0),
      'longest s': largest(some.map(({ seconds = 0 }) => seconds)),
    };
  };
  const byFamily = families.map((family) => [family, summary(rows.filter((row) => row.family === family))]);
  console.table(Object.fromEntries([...byFamily, ['all', summary(rows)]]));
  const { wrong, undecided } = summary(rows);
  return wrong <= MAX_WRONG_SHARE * rows.length && undecided <= MAX_UNDECIDED_SHARE * rows.length;
}
