/** In which order checks run, which of them run concurrently, and what each may spend of a small budget. */
import { runsEarly, type Check } from '../engine/run/check.ts';

/** Checks that run one after another; each stage is known when it begins. */
export type Stage = () => readonly Check[];

/**
 * One stage, or with a budget three: what the requirements ask, once more what its share was too small for, and then
 * the checks that go beyond the requirements.
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

/** The checks of these requirements before the others, except those that would disturb others. */
export function beginningWith(ids: readonly string[], checks: readonly Check[]): readonly Check[] {
  const isFirst = (check: Check): boolean => runsEarly(check) && check.ids.some((id) => ids.includes(id));
  return [...checks.filter(isFirst), ...checks.filter((check) => !isFirst(check))];
}

const LEAST_SHARE = 2;
/** The rest is kept for confirmations. */
const SPENDABLE = 0.9;

/** Requests a check may send: twice an equal part of what is left, since many checks need few. */
export const shareOf = (left: number, waiting: number): number =>
  Math.max(LEAST_SHARE, Math.floor((SPENDABLE * 2 * left) / waiting));

/** Checks that run one after another. */
export type Lane = readonly Check[];

/**
 * Groups of lanes that run concurrently, in the same order each time: checks that only read run with their neighbours;
 * those that write to the scratch tenant run concurrently in one lane, from the beginning since they take long.
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

/** Calls wait for the ones before them. */
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(task));
}
