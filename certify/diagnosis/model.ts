/** How well a known mistake explains what is broken; and what breaks together, over all of them. */
import { HAPPENED, isSameRefusal, type Evidence } from './features.ts';
import type { Signature } from './signature.ts';

/** What a broken requirement costs that nothing explains. */
export const UNEXPLAINED = 5;
/** What one costs whose features are all others than the mistake was seen to have: it, or what follows from it. */
const UNLIKE_OWN = UNEXPLAINED;
const UNLIKE = 2.5;
/** One that the mistake may break by its nature, and never did; or with an answer that it gives elsewhere. */
const MAY = 2.5;
/** One of the mistake's own that holds. */
const OWN_HOLDS = 4;
/** Another that a run of it broke, and that holds. */
const OTHER_HOLDS = 0.5;

export interface Model {
  readonly signatures: readonly Signature[];
  /** What a requirement costs under a signature. */
  readonly cost: (id: string, features: ReadonlySet<string>, signature: Signature) => number;
  /** What a signature costs for what it breaks and is not broken. */
  readonly absent: (signature: Signature, evidence: Evidence) => number;
  /** Of the mistakes that break one requirement, the share that breaks another too. */
  readonly together: (id: string, other: string) => number;
  /** Of the mistakes that one requirement is the root of, the share that breaks another too. */
  readonly follows: (root: string, other: string) => number;
  /** Of the mistakes that break both, the share of which the first is the mistake's own and not the other. */
  readonly leads: (id: string, other: string) => number;
}

export function modelOf(signatures: readonly Signature[]): Model {
  const broken = new Map<string, number>();
  const both = new Map<string, number>();
  const roots = new Map<string, number>();
  const rooted = new Map<string, number>();
  const having = new Map<string, number>();
  for (const { own, seen } of signatures) {
    const ids = idsOf(seen);
    for (const id of ids) {
      count(broken, id);
      if (own.includes(id)) count(roots, id);
      for (const other of ids) {
        if (other === id) continue;
        count(both, `${id} ${other}`);
        if (own.includes(id)) count(rooted, `${id} ${other}`);
      }
      for (const feature of featuresOfId(seen, id).keys()) count(having, `${id} ${feature}`);
    }
  }
  const share = (counts: Map<string, number>, key: string, id: string): number =>
    (counts.get(key) ?? 0) / Math.max(1, broken.get(id) ?? 0);
  /** How much a feature tells: what few mistakes show tells more, how it happened to be asked less. */
  const weight = (id: string, feature: string): number => {
    const n = broken.get(id) ?? 0;
    const rare = Math.log((n + 2) / ((having.get(`${id} ${feature}`) ?? 0) + 1));
    return HAPPENED.test(feature) ? rare / 2 : rare;
  };
  const likeness = (
    id: string,
    features: ReadonlySet<string>,
    known: ReadonlyMap<string, number>,
  ): number => {
    let shared = 0;
    let sum = 0;
    for (const feature of features) {
      const w = weight(id, feature);
      shared += known.has(feature) ? w : 0;
      sum += w;
    }
    for (const [feature, often] of known)
      if (!features.has(feature)) sum += 0.5 * often * weight(id, feature);
    return sum === 0 ? 1 : shared / sum;
  };
  return {
    signatures,
    cost: (id, features, { own, may, seen }) => {
      const known = featuresOfId(seen, id);
      const isOwn = own.includes(id);
      if (known.size === 0)
        return isOwn ? UNLIKE_OWN : may.includes(id) || givesElsewhere(seen, features) ? MAY : UNEXPLAINED;
      return (isOwn ? UNLIKE_OWN : UNLIKE) * (1 - likeness(id, features, known));
    },
    absent: ({ own, seen }, evidence) => {
      const ids = [...idsOf(seen)].filter((id) => !evidence.has(id) && !own.includes(id));
      return OWN_HOLDS * own.filter((id) => !evidence.has(id)).length + OTHER_HOLDS * ids.length;
    },
    together: (id, other) => share(both, `${id} ${other}`, id),
    follows: (root, other) => (rooted.get(`${root} ${other}`) ?? 0) / Math.max(1, roots.get(root) ?? 0),
    leads: (id, other) => {
      const [mine, others] = [rooted.get(`${id} ${other}`) ?? 0, rooted.get(`${other} ${id}`) ?? 0];
      return (mine + 0.5) / (mine + others + 1);
    },
  };
}

const count = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

const idsOf = (seen: Signature['seen']): ReadonlySet<string> =>
  new Set(Object.values(seen).flatMap((run) => Object.keys(run)));

/** Whether the mistake gave the same refusal under any requirement: it depends on who asks, not on what for. */
const givesElsewhere = (seen: Signature['seen'], features: ReadonlySet<string>): boolean =>
  Object.values(seen).some((run) =>
    Object.values(run).some((other) => isSameRefusal(features, new Set(other))),
  );

/** The features of a requirement in any run that broke it, with the share of those runs. */
function featuresOfId(seen: Signature['seen'], id: string): ReadonlyMap<string, number> {
  const runs = Object.values(seen)
    .map((run) => run[id])
    .filter((features) => features !== undefined);
  const shares = new Map<string, number>();
  for (const features of runs)
    for (const feature of features) shares.set(feature, (shares.get(feature) ?? 0) + 1 / runs.length);
  return shares;
}
