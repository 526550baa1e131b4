/** Groups failures by cause, each with its consequences and the mistakes that most often break its requirement. */
import { requirement, type RequirementId } from '../../engine/requirements.ts';
import type { Failure } from '../../engine/run/evidence/evidence.ts';
import type { Diagnosis, RequirementResult } from '../report/report.ts';
import { evidenceOf, isOfMember, WANTED, type Evidence, type Features } from './features.ts';
import { areOne, followsFrom } from './follows.ts';
import { kindsOf } from './mistakes/all.ts';

const MOST_MISTAKES = 3;

/** Returns the causes with at least one failure, most direct first; warnings alone are not a cause. */
export function diagnose(results: readonly RequirementResult[]): Diagnosis[] {
  const failed = new Set<string>(results.filter(({ status }) => status === 'fail').map(({ id }) => id));
  return [false, true].flatMap((isAccepted) => {
    const part = results.map((result) => ({
      ...result,
      failures: result.failures.filter((one) => isAcceptedToo(one, result) === isAccepted),
    }));
    const evidence = evidenceOf(part.filter(({ failures }) => failures.length > 0));
    return causesOf(evidence)
      .filter((findings) => findings.some((id) => failed.has(id)))
      .map((findings) => diagnosisOf(findings, evidence, isAccepted ? results : []));
  });
}

function diagnosisOf(findings: string[], evidence: Evidence, results: readonly RequirementResult[]) {
  const root = findings[0]!;
  const behavesLike = kindsOf(root, evidence.get(root)!)
    .slice(0, MOST_MISTAKES)
    .map(({ name, why, fix, right }) => ({ name, why, remedy: `${fix}\n${right}` }));
  const result = results.find(({ id }) => id === root);
  const failure = result?.failures.findIndex((one) => isAcceptedToo(one, result));
  return { root, findings, ...(failure === undefined ? {} : { failure }), behavesLike };
}

/** If a requirement failed by wrong rejections, accepted requests under it are another mistake. */
const isAcceptedToo = (failure: Failure, { failures }: RequirementResult): boolean =>
  isServed(failure) && failures.some((other) => isRefusedWrongly(other));
const wantsRefusal = ({ expected }: Failure): boolean => /^4\d\d /.test(expected);
const isServed = (failure: Failure): boolean => wantsRefusal(failure) && /^2/.test(failure.received);
const isRefusedWrongly = (failure: Failure): boolean =>
  wantsRefusal(failure) && /^[45]\d\d/.test(failure.received);

function causesOf(evidence: Evidence): string[][] {
  const ids = [...evidence.keys()];
  const causeOf = (id: string): string | undefined => ids.find((cause) => followsFrom(id, cause, evidence));
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

/** Mismatches in members of an answer first, then causes with many consequences; a SHOULD comes last. */
const weightOf = (findings: readonly string[], evidence: Evidence): number =>
  findings.length +
  (findings.some((id) => isOfMember(evidence.get(id)!)) ? 100 : 0) -
  (findings.every(isRecommended) ? 1000 : 0);

// -- the root: the requirement that a mistake breaks most directly ----------------------------------

/** Sorts a group: the requirement that matches the received answer best first, a SHOULD that explains no MUST last. */
function rootFirst(part: Evidence): string[] {
  const group = [...part.keys()];
  const weight = (id: string): number => {
    const others = group.filter((other) => other !== id);
    const follows = others.some((other) => followsFrom(id, other, part));
    const explains = others.some((other) => followsFrom(other, id, part));
    const isLast = isRecommended(id) && !explains;
    return matchScore(id, part.get(id)!) - (follows ? 2 : 0) - (isLast ? 10 : 0);
  };
  const weights = new Map(group.map((id) => [id, weight(id)]));
  return group.sort((a, b) => weights.get(b)! - weights.get(a)!);
}

const isRecommended = (id: string): boolean => requirement(id as RequirementId).level === 'SHOULD';

/** The requirements whose valid requests each code would reject. */
const ABOUT = {
  'code invalid_time_range': /^4\.2-(from-|to-|window|offsets|fractions|lowercase|r[12]-)/,
  'code page_size_out_of_range': /^4\.2-pageSize/,
  'code invalid_request': /^4\.2-from_id/,
};

function matchScore(id: string, features: Features): number {
  const all = [...features];
  const code = id.replace(/^7\.\d-/, '');
  const isAbout = Object.entries(ABOUT).some(([one, about]) => features.has(one) && about.test(id));
  if (code === id) return isAbout ? 1 : 0;
  const wants = (words: string): boolean => all.some((one) => one.startsWith(WANTED) && one.includes(words));
  // Rejected as required, except for the status or the code.
  const isNearly = all.some((one) => one.endsWith(', the status that is wanted') || one === `code ${code}`);
  // A framework's error belongs to the requirement of that error rather than to that of the request.
  return (isNearly && wants(code) ? 1 : 0) + (features.has('no documented code') ? 0.25 : 0);
}
