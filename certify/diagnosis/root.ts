/** Chooses the root: the requirement that a mistake breaks most directly. */
import { requirement, type RequirementId } from '../../engine/requirements.ts';
import { isOfMember, WANTED, type Evidence } from './features.ts';
import { followsFrom, hasSeveralEdgesWrong, isLimited, refusalOfValid } from './follows.ts';

/** Penalty of a candidate root that follows from another requirement. */
const FOLLOWS = 2;
/** Penalty for a failure of items and pages if a member of an answer is wrong. */
const INDIRECT = 1;
/** Penalty for a failure limited to some circumstances, or a rejection, if another candidate is not. */
const PARTIAL = 0.5;
const RECOMMENDED = 10;

/** The root matches the received answer best and follows from no other. A SHOULD that explains no MUST comes last. */
export function rootFirst(part: Evidence): string[] {
  const members = [...part.keys()];
  const isWindow = hasSeveralEdgesWrong(part);
  const follows = (id: string): boolean =>
    isWindow
      ? id.startsWith('4.2-') && id !== '4.2-window'
      : members.some((other) => followsFrom(id, other, part));
  const ofMembers = members.some((id) => isOfMember(part.get(id)!) && !follows(id));
  const limited = (id: string): boolean => isLimited(id, part.get(id)!);
  const refused = (id: string): boolean => refusalOfValid(part.get(id)!) !== undefined;
  const partly = (is: (id: string) => boolean, id: string): number =>
    is(id) && !members.every(is) ? PARTIAL : 0;
  const others = (id: string): string[] => members.filter((other) => other !== id);
  const weight = (id: string): number => {
    const indirect = ofMembers && !isOfMember(part.get(id)!) && id !== '4.2-repeatable';
    return (
      matchScore(id, part) -
      (follows(id) ? FOLLOWS : 0) -
      (indirect ? INDIRECT : 0) -
      partly(limited, id) -
      partly(refused, id) -
      (isRecommended(id) && !others(id).some((other) => followsFrom(other, id, part)) ? RECOMMENDED : 0)
    );
  };
  const weights = new Map(members.map((id) => [id, weight(id)]));
  return [...members].sort((a, b) => weights.get(b)! - weights.get(a)!);
}

export const isRecommended = (id: string): boolean => requirement(id as RequirementId).level === 'SHOULD';

/** The requirements that each error code refers to. */
const ABOUT: Readonly<Record<string, RegExp>> = {
  invalid_time_range: /^4\.2-(from-|to-|window|offsets|fractions|lowercase|r[12]-)/,
  page_size_out_of_range: /^4\.2-pageSize/,
  invalid_request: /^4\.2-from_id/,
};

function matchScore(id: string, part: Evidence): number {
  const features = [...part.get(id)!];
  const code = id.replace(/^7\.\d-/, '');
  const wants = (words: string): boolean =>
    features.some((feature) => feature.startsWith(WANTED) && feature.includes(words));
  let sum = 0;
  // Rejected as required, except for the status or the code.
  const nearly = features.some(
    (feature) => feature.endsWith(', the status that is wanted') || feature.startsWith(`code ${code}`),
  );
  if (code !== id && nearly && wants(code)) sum += 1;
  // A framework's error belongs to the requirement of that error rather than to that of the request.
  if (code !== id && features.includes('no documented code')) sum += 0.25;
  for (const one of codesOfValid(part.get(id)!)) {
    if (ABOUT[one]?.test(id)) sum += 1;
    else if (ABOUT[one] && Object.values(ABOUT).some((about) => about.test(id))) sum -= 1;
  }
  // Invalid requests are accepted, and valid ones are rejected with the code for the invalid ones.
  const served = features.some((feature) => feature.startsWith('answered 2'));
  if (served && [...part.values()].flatMap(codesOfValid).some(wants)) sum += 2;
  return sum;
}

const codesOfValid = (features: ReadonlySet<string>): string[] =>
  [...(refusalOfValid(features) ?? '').matchAll(/code (\w+)/g)].map(([, code]) => code!);
