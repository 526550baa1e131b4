/** Chooses the root: the requirement that a mistake breaks most directly. */
import { requirement, type RequirementId } from '../../engine/requirements.ts';
import { WANTED, type Evidence, type Features } from './features.ts';
import { followsFrom } from './follows.ts';

/** Sorts a group: the requirement that matches the received answer best first, a SHOULD that explains no MUST last. */
export function rootFirst(part: Evidence): string[] {
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

export const isRecommended = (id: string): boolean => requirement(id as RequirementId).level === 'SHOULD';

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
