/**
 * The failures by cause: each failure that follows from no other is a cause of its own, with its consequences and
 * the mistakes that break its requirement most often.
 */
import type { Failure } from '../../engine/run/evidence/evidence.ts';
import type { Diagnosis, RequirementResult } from '../report.ts';
import { evidenceOf, isOfMember, type Evidence } from './features.ts';
import { areOne, followsFrom, hasSeveralEdgesWrong } from './follows.ts';
import { kindsOf } from './mistakes/all.ts';
import { isRecommended, rootFirst } from './root.ts';

const TOLD_AT_MOST = 3;

/** Causes in which something failed, the most direct first; empty where nothing did: a warning is no failure. */
export function diagnose(results: readonly RequirementResult[]): Diagnosis[] {
  const failed = new Set<string>(results.filter(({ status }) => status === 'fail').map(({ id }) => id));
  const told = results.map((result) => ({
    ...result,
    failures: result.failures.filter((one) => !isServedToo(one, result)),
  }));
  const served = results.map((result) => ({
    ...result,
    failures: result.failures.filter((one) => isServedToo(one, result)),
  }));
  return [told, served].flatMap((part) => {
    const evidence = evidenceOf(part.filter(({ failures }) => failures.length > 0));
    return causesOf(evidence)
      .filter((findings) => findings.some((id) => failed.has(id)))
      .map((findings) => diagnosisOf(findings, evidence, part === served ? results : []));
  });
}

function diagnosisOf(
  findings: string[],
  evidence: Evidence,
  results: readonly RequirementResult[],
): Diagnosis {
  const root = findings[0]!;
  const behavesLike = kindsOf(root, evidence.get(root)!)
    .slice(0, TOLD_AT_MOST)
    .map(({ name, what, why, fix, right }) => ({ name, why: `${what} ${why}`, remedy: `${fix}\n${right}` }));
  const result = results.find(({ id }) => id === root);
  const failure = result?.failures.findIndex((one) => isServedToo(one, result));
  return { root, findings, ...(failure === undefined ? {} : { failure }), behavesLike };
}

/** Where a requirement was broken by wrong refusals, that other requests were served at all is another mistake. */
const isServedToo = (failure: Failure, { failures }: RequirementResult): boolean =>
  isServed(failure) && failures.some((other) => isRefusedWrongly(other));
const wantsRefusal = ({ expected = '' }: Failure): boolean => /^4\d\d /.test(expected);
const isServed = (failure: Failure): boolean => wantsRefusal(failure) && /^2/.test(failure.received ?? '');
const isRefusedWrongly = (failure: Failure): boolean =>
  wantsRefusal(failure) && /^[45]\d\d/.test(failure.received ?? '');

/** Each cause as its requirements, the root first. */
export function causesOf(evidence: Evidence): string[][] {
  const ids = [...evidence.keys()];
  const isWindow = hasSeveralEdgesWrong(evidence);
  const causeOf = (id: string): string | undefined => {
    if (isWindow && EDGE.test(id)) return '4.2-window';
    if (isWindow && id === '4.2-window') return undefined;
    return ids.find((cause) => followsFrom(id, cause, evidence));
  };
  const groups: string[][] = [];
  const followers: string[] = [];
  for (const id of ids) {
    if (causeOf(id) !== undefined) followers.push(id);
    else {
      const same = groups.filter((group) => group.some((other) => areOne(id, other, evidence)));
      for (const group of same) groups.splice(groups.indexOf(group), 1);
      groups.push([...same.flat(), id]);
    }
  }
  for (const id of followers) {
    const seen = new Set([id]);
    let top = causeOf(id);
    for (let next = top; next !== undefined && !seen.has(next); next = causeOf(next)) seen.add((top = next));
    const group = groups.find((one) => one.includes(top!));
    if (group) group.push(id);
    else groups.push([id]);
  }
  return groups
    .map((group) => rootFirst(new Map(group.map((id) => [id, evidence.get(id)!]))))
    .sort((a, b) => weightOf(b, evidence) - weightOf(a, evidence));
}
const EDGE = /^4\.2-(from-inclusive|to-exclusive|r1-.*)$/;

/** A mismatch in a member of an answer comes first, then the cause with most consequences; a SHOULD comes last. */
const weightOf = (findings: readonly string[], evidence: Evidence): number =>
  findings.length +
  (findings.some((id) => isOfMember(evidence.get(id)!)) ? 100 : 0) -
  (findings.every(isRecommended) ? 1000 : 0);
