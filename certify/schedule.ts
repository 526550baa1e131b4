/** In which order checks run, which of them side by side, and what each may spend of a small budget. */
import type { Probe } from '../fixtures/run/probe.ts';

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

/** Probes that only read run side by side with the ones beside them, in the same order each time. */
export function quietTogether(probes: readonly Probe[]): Probe[][] {
  const groups: Probe[][] = [];
  for (const probe of probes) {
    const before = groups.at(-1);
    if (probe.quiet && before?.[0]?.quiet) before.push(probe);
    else groups.push([probe]);
  }
  return groups;
}

/** Calls wait for the ones before them. */
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(task));
}
