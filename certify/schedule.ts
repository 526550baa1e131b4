/** In which order checks run, which of them side by side, and what each may spend of a small budget. */
import type { Probe } from '../engine/run/probe.ts';

/** What runs one after another; each stage is known when it begins. */
export type Stage = () => readonly Probe[];

/**
 * All at once, or with a budget: what no other check asks first, then once more what its share was too small for,
 * then the checks that only look further.
 */
export function stagesOf(
  probes: readonly Probe[],
  budget: number | undefined,
  isCutShort: (probe: Probe) => boolean,
): Stage[] {
  if (budget === undefined) return [() => probes];
  const required = probes.filter(({ supplement }) => !supplement);
  return [
    () => required,
    () => required.filter(isCutShort),
    () => probes.filter(({ supplement }) => supplement),
  ];
}

/** The checks of these requirements before the others, but for what would disturb them. */
export function beginningWith(ids: readonly string[], probes: readonly Probe[]): readonly Probe[] {
  const early = ({ ids: of, last, guesses }: Probe): boolean =>
    !last && !guesses && of.some((id) => ids.includes(id));
  return [...probes.filter(early), ...probes.filter((probe) => !early(probe))];
}

const LEAST_SHARE = 2;
/** The rest is kept to ask again what fails. */
const SPENDABLE = 0.9;

/** Of what is left, twice an equal part: many checks ask little. */
export const shareOf = (left: number, waiting: number): number =>
  Math.max(LEAST_SHARE, Math.floor((SPENDABLE * 2 * left) / waiting));

/** Probes that run one after another. */
export type Lane = readonly Probe[];

/**
 * Groups of lanes that run side by side, in the same order each time: probes that only read with their neighbours,
 * and beside them, from the beginning since it takes long, whatever changes the scratch tenant.
 */
export function sideBySideLanes(probes: readonly Probe[]): Lane[][] {
  const together = ({ quiet, onScratch }: Probe): boolean => (quiet || onScratch) ?? false;
  const groups: Probe[][] = [];
  for (const probe of probes) {
    const before = groups.at(-1);
    if (together(probe) && before?.[0] && together(before[0])) before.push(probe);
    else groups.push([probe]);
  }
  return groups.map((group) => {
    const scratch = group.filter(({ onScratch }) => onScratch);
    const others = group.filter((probe) => !scratch.includes(probe)).map((probe) => [probe]);
    return scratch.length > 0 ? [scratch, ...others] : others;
  });
}

/** Calls wait for the ones before them. */
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(task));
}
