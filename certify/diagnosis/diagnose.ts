/**
 * One cause, one group. What a server breaks is compared with the faults of the reference server, of which it is
 * known what each breaks: the fault that explains most names the root, and what it explains follows from it.
 */
import type { Diagnosis, Likeness, RequirementResult } from '../report.ts';
import type { Signature } from './signature.ts';
import { SIGNATURES } from './signatures.ts';

type Broken = ReadonlyMap<string, RequirementResult>;

/** Weight of a requirement that a mistake often breaks too and that holds here. */
const ABSENT = 0.1;
/** Stands for the mistakes that nobody knows. */
const UNKNOWN = 0.4;
const TOLD_FROM = 0.2;
const TOLD_AT_MOST = 3;

/** Groups, the one that explains most first; empty where nothing failed or warned. */
export function diagnose(
  results: readonly RequirementResult[],
  signatures: readonly Signature[] = SIGNATURES,
): Diagnosis[] {
  const broken: Broken = new Map(
    results
      .filter(({ status }) => status === 'fail' || status === 'warn')
      .map((result) => [result.id, result]),
  );
  const left = new Set(broken.keys());
  const possible = signatures.filter(({ own }) => Object.keys(own).every((id) => broken.has(id)));
  const groups: string[][] = [];
  for (;;) {
    const best = strongest(possible, (signature) => gain(signature, broken, left));
    if (!best) break;
    const own = Object.keys(best.own).filter((id) => left.has(id));
    const group = [...own, ...best.may.filter((id) => left.has(id) && !own.includes(id))];
    for (const id of group) left.delete(id);
    groups.push(group);
  }
  for (const id of left) {
    const related = groups.find((group) =>
      group.some((other) => shareRequest(broken.get(other)!, broken.get(id)!)),
    );
    if (related) related.push(id);
    else groups.push([id]);
  }
  return groups.map((findings) => ({
    root: findings[0]!,
    findings,
    behavesLike: likenesses(findings, broken, possible),
  }));
}

function strongest<T>(candidates: readonly T[], strength: (candidate: T) => number): T | undefined {
  let best: { candidate: T; value: number } | undefined;
  for (const candidate of candidates) {
    const value = strength(candidate);
    if (value > 0 && (!best || value > best.value)) best = { candidate, value };
  }
  return best?.candidate;
}

/** How much of what is left a mistake explains, by how well its words fit. */
function gain(signature: Signature, broken: Broken, left: ReadonlySet<string>): number {
  const ids = new Set([...Object.keys(signature.own), ...signature.may]);
  const explained = [...ids].filter((id) => left.has(id)).length;
  if (!Object.keys(signature.own).some((id) => left.has(id))) return 0;
  return explained * fit(signature, broken);
}

/** 0 to 1: the share of its own requirements whose failure has its words, less for what it breaks and is not broken. */
function fit({ own, may }: Signature, broken: Broken): number {
  const ids = Object.entries(own);
  const said = ids.filter(([id, words]) =>
    broken.get(id)!.failures.some(({ message }) => new RegExp(words).test(message)),
  ).length;
  const absent = may.filter((id) => !broken.has(id)).length;
  return said / ids.length / (1 + ABSENT * absent);
}

const shareRequest = (a: RequirementResult, b: RequirementResult): boolean =>
  a.failures.some(({ request }) => request !== '' && b.failures.some((other) => other.request === request));

function likenesses(findings: readonly string[], broken: Broken, possible: readonly Signature[]): Likeness[] {
  const ranked = possible
    .filter(({ own }) => Object.keys(own).every((id) => findings.includes(id)))
    .map((signature) => {
      const ids = [...Object.keys(signature.own), ...signature.may];
      const covered = findings.filter((id) => ids.includes(id)).length / findings.length;
      return { signature, strength: covered ** 2 * fit(signature, broken) };
    })
    .sort((a, b) => b.strength - a.strength);
  // Only what fits about as well competes: the long tail of poor fits proves nothing.
  const rivals = ranked.filter(({ strength }) => strength > 0.5 * (ranked[0]?.strength ?? 0));
  const sum = rivals.reduce((total, { strength }) => total + strength, UNKNOWN);
  return rivals
    .slice(0, TOLD_AT_MOST)
    .map(({ signature, strength }) => ({
      name: signature.name,
      likelihood: Math.round((100 * strength) / sum) / 100,
      why: `it breaks ${Object.keys(signature.own).join(' and ')} with the same words`,
      remedy: `look at ${broken.get(Object.keys(signature.own)[0]!)!.lookAt[0]}`,
    }))
    .filter(({ likelihood }) => likelihood >= TOLD_FROM);
}
