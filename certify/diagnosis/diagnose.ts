/**
 * One cause, one group. What a server breaks is compared with runs of the faults of the reference server, of which it
 * is known what is wrong: as few of them as explain it, each with what it explains. What none explains goes where it
 * is usually broken too.
 */
import type { Diagnosis, Likeness, RequirementResult } from '../report.ts';
import { evidenceOf, isOfMember, isSameRefusal, OF_MEMBER, SAME_ANSWER, type Evidence } from './features.ts';
import { mistakeOf } from './mistakes/all.ts';
import { modelOf, UNEXPLAINED, type Model } from './model.ts';
import { isRecommended, rootFirst } from './root.ts';
import type { Signature } from './signature.ts';
import { SIGNATURES } from './signatures.ts';

/** What a further mistake must explain to be taken for one. */
const ANOTHER = 3;
/** Two findings belong together where so many of the mistakes that break the one break the other. */
const TOGETHER = 0.15;
const SAME_CAUSE = 0.5;
/** How much worse, in cost, a mistake may fit and still be half as likely. */
const HALVED_BY = 1;
/** What a mistake that nobody knows is taken to cost, for each of the findings. */
const NOVEL = 2;
const TOLD_FROM = 0.25;
const TOLD_AT_MOST = 3;

let shipped: Model | undefined;

/** Groups in which something failed, the one that explains most first; empty where nothing did: a warning is no failure. */
export function diagnose(
  results: readonly RequirementResult[],
  signatures?: readonly Signature[],
): Diagnosis[] {
  const failed = new Set<string>(results.filter(({ status }) => status === 'fail').map(({ id }) => id));
  if (failed.size === 0) return [];
  const model = signatures ? modelOf(signatures) : (shipped ??= modelOf(SIGNATURES));
  return groupsOf(evidenceOf(results), model)
    .filter(({ findings }) => findings.some((id) => failed.has(id)))
    .map((group) => ({
      root: group.findings[0]!,
      findings: group.findings,
      behavesLike: likenesses(group),
    }));
}

export interface Group {
  /** The root first. */
  readonly findings: readonly string[];
  /** Known mistakes, the likeliest first. */
  readonly ranked: readonly { readonly signature: Signature; readonly likelihood: number }[];
  readonly evidence: Evidence;
}

export function groupsOf(evidence: Evidence, model: Model): Group[] {
  const ids = [...evidence.keys()];
  const chosen = chooseFew(evidence, model);
  const groups = new Map<Signature | undefined, string[]>();
  for (const id of ids) {
    const costs = chosen.map((signature) => model.cost(id, evidence.get(id)!, signature));
    const least = Math.min(UNEXPLAINED, ...costs);
    const by = least < UNEXPLAINED ? chosen[costs.indexOf(least)] : undefined;
    groups.set(by, [...(groups.get(by) ?? []), id]);
  }
  const clusters = [...groups].flatMap(([by, members]): Cluster[] =>
    by ? [{ members, roots: by.own.filter((id) => evidence.has(id)) }] : [],
  );
  for (const id of groups.get(undefined) ?? []) attach(id, clusters, evidence, model);
  return merged(clusters, evidence, model)
    .map(({ members }) => {
      const part: Evidence = new Map(members.map((id) => [id, evidence.get(id)!]));
      const ranked = rank(part, evidence, model);
      return { findings: rootFirst(part, ranked, model), ranked, evidence: part };
    })
    .sort((a, b) => weightOf(b) - weightOf(a));
}

/** What is wrong in a member of an answer is told first, then what breaks most; what is only recommended, last. */
const weightOf = ({ findings, evidence }: Group): number =>
  findings.length +
  (findings.some((id) => isOfMember(evidence.get(id)!)) ? 100 : 0) -
  (isRecommended(findings[0]!) ? 1000 : 0);

/** As few known mistakes as explain what is broken: the next one only where it explains enough. */
function chooseFew(evidence: Evidence, model: Model): Signature[] {
  const chosen: Signature[] = [];
  const least = new Map([...evidence.keys()].map((id) => [id, UNEXPLAINED]));
  for (;;) {
    let best: { signature: Signature; gain: number } | undefined;
    for (const signature of model.signatures) {
      if (!signature.own.some((id) => evidence.has(id))) continue;
      let gain = -ANOTHER - model.absent(signature, evidence);
      for (const [id, features] of evidence)
        gain += Math.max(0, least.get(id)! - model.cost(id, features, signature));
      if (gain > (best?.gain ?? 0)) best = { signature, gain };
    }
    if (!best) return chosen;
    chosen.push(best.signature);
    for (const [id, features] of evidence)
      least.set(id, Math.min(least.get(id)!, model.cost(id, features, best.signature)));
  }
}

interface Cluster {
  readonly members: string[];
  /** What the mistakes behind it have for their own. */
  readonly roots: string[];
}

/** Puts a finding to the group that the same answer or refusal breaks, or with which it is broken most often, or begins one. */
function attach(id: string, clusters: Cluster[], evidence: Evidence, model: Model): void {
  let best: { cluster: Cluster; share: number } | undefined;
  for (const cluster of clusters) {
    const same = cluster.members.some(
      (other) =>
        evidence.get(id)!.has(`${SAME_ANSWER}${other}`) ||
        isSameRefusal(evidence.get(id)!, evidence.get(other)!),
    );
    const often = cluster.members.map((other) =>
      Math.max(model.together(id, other), model.together(other, id)),
    );
    const share = same ? 1 : Math.max(...often);
    if (share >= TOGETHER && share > (best?.share ?? 0)) best = { cluster, share };
  }
  if (best) best.cluster.members.push(id);
  else clusters.push({ members: [id], roots: [id] });
}

/**
 * Where the mistakes of which the one is the root usually break the root of the other too, or both are the same wrong
 * refusal, they are one.
 */
function merged(clusters: readonly Cluster[], evidence: Evidence, model: Model): readonly Cluster[] {
  const result: Cluster[] = [];
  const bySize = [...clusters].sort((a, b) => b.members.length - a.members.length);
  for (const { members, roots } of bySize) {
    const near = result.find((other) =>
      roots.some((root) =>
        other.roots.some(
          (one) =>
            root === one ||
            isSameRefusal(evidence.get(root)!, evidence.get(one)!) ||
            Math.max(model.follows(root, one), model.follows(one, root)) >= SAME_CAUSE,
        ),
      ),
    );
    if (near) {
      near.members.push(...members);
      near.roots.push(...roots);
    } else result.push({ members: [...members], roots: [...roots] });
  }
  return result;
}

/** Every known mistake that can have done it, by how well it explains a group; what is broken elsewhere is not held against it. */
function rank(part: Evidence, evidence: Evidence, model: Model): Group['ranked'] {
  const costs = model.signatures
    .filter(({ own }) => own.some((id) => part.has(id)))
    .map((signature) => {
      let cost = model.absent(signature, evidence);
      for (const [id, features] of part) cost += model.cost(id, features, signature);
      return { signature, cost };
    })
    .sort((a, b) => a.cost - b.cost);
  const strength = (cost: number): number => 2 ** (-cost / HALVED_BY);
  const sum = costs.reduce((total, { cost }) => total + strength(cost), strength(NOVEL * part.size));
  return costs.map(({ signature, cost }) => ({ signature, likelihood: strength(cost) / sum }));
}

export function likenesses(group: Group): Likeness[] {
  const told = group.ranked.filter(({ likelihood }) => likelihood >= TOLD_FROM).slice(0, TOLD_AT_MOST);
  return told.map(({ signature, likelihood }) => {
    const rival = group.ranked.find(({ signature: other }) => other !== signature)?.signature;
    const mistake = mistakeOf(signature.name);
    return {
      name: signature.name,
      likelihood: Math.round(100 * likelihood) / 100,
      why: [mistake?.what, mistake?.why, seenAsThere(group, signature, rival)].filter(Boolean).join(' '),
      remedy: [mistake?.fix, mistake?.right].filter(Boolean).join('\n'),
    };
  });
}

/** What the target has in common with a mistake, and what sets it apart from the next likely one. */
function seenAsThere(group: Group, mistake: Signature, rival: Signature | undefined): string {
  const { evidence, findings } = group;
  const has = (of: Signature, id: string, feature: string): boolean =>
    Object.values(of.seen).some((run) => run[id]?.includes(feature));
  const shared = findings.flatMap((id, index) =>
    [...evidence.get(id)!]
      .filter((feature) => isTelling(feature) && has(mistake, id, feature))
      .map((feature) => ({
        said: feature.replace('got: ', '') + (index > 0 ? ` (${id})` : ''),
        feature,
        id,
      })),
  );
  const apart = shared.find(({ id, feature }) => rival && !has(rival, id, feature));
  const common = shared.filter((one) => one !== apart).slice(0, 2);
  return [
    ...(common.length > 0 ? [`Here as there: ${common.map(({ said }) => said).join(', ')}.`] : []),
    ...(apart ? [`Unlike “${rival!.name}”: ${apart.said}.`] : []),
  ].join(' ');
}

/** Words that say something to a reader; the others only tell mistakes apart. */
const isTelling = (feature: string): boolean => !NOT_TELLING.test(feature) && feature !== OF_MEMBER;
const NOT_TELLING = new RegExp(
  [
    `^(wanted|law): |^${SAME_ANSWER}|[#]|TIME|URL|UUID`,
    // How it happened to be asked, and what every refusal of its kind has.
    'asked with (from_id|pageSize 1(000)?|a path in upper case)$|^code |no documented code|status that is wanted',
    'the same instant in another spelling',
  ].join('|'),
);
