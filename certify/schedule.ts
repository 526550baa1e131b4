/** The order of checks, which of them run concurrently, and the share of a small budget for each. */
import { runsEarly, type Check } from '../engine/run/check.ts';

/** A stage of the run; its checks are determined when it starts. */
export type Stage = () => readonly Check[];

/**
 * One stage without a budget. With a budget three: checks of the requirements, those again whose share was too small,
 * and then checks that go beyond the requirements.
 */
export function stagesOf(
  checks: readonly Check[],
  budget: number | undefined,
  isCutShort: (check: Check) => boolean,
): Stage[] {
  if (budget === undefined) return [() => checks];
  const required = checks.filter(({ isSupplement }) => !isSupplement);
  return [
    () => required,
    () => required.filter(isCutShort),
    () => checks.filter(({ isSupplement }) => isSupplement),
  ];
}

/** Puts the checks of these requirements first, except those that would disturb others. */
export function beginningWith(ids: readonly string[], checks: readonly Check[]): readonly Check[] {
  const isFirst = (check: Check): boolean => runsEarly(check) && check.ids.some((id) => ids.includes(id));
  return [...checks.filter(isFirst), ...checks.filter((check) => !isFirst(check))];
}

const LEAST_SHARE = 2;
/** The remainder is reserved for confirmations. */
const SPENDABLE = 0.9;

/** The number of requests that a check may send: twice an equal share of what is left, since many checks need few. */
export const shareOf = (left: number, waiting: number): number =>
  Math.max(LEAST_SHARE, Math.floor((SPENDABLE * 2 * left) / waiting));

/** Checks that run one after another. */
export type Lane = readonly Check[];

/**
 * Groups of lanes that run concurrently, in a fixed order. Adjacent checks that only read form a group; those that
 * write to the scratch tenant share one lane, which starts first because it takes long.
 */
export function concurrentLanes(checks: readonly Check[]): Lane[][] {
  const isShared = ({ access }: Check): boolean => ['reads', 'reads late', 'scratch'].includes(access);
  const groups: Check[][] = [];
  for (const check of checks) {
    const before = groups.at(-1);
    if (isShared(check) && before?.[0] && isShared(before[0])) before.push(check);
    else groups.push([check]);
  }
  return groups.map((group) => {
    const scratch = group.filter(({ access }) => access === 'scratch');
    const others = group.filter((check) => !scratch.includes(check)).map((check) => [check]);
    return scratch.length > 0 ? [scratch, ...others] : others;
  });
}

/** Returns a function whose calls run one at a time, in order. */
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(task));
}
