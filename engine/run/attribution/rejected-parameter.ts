/** Finds the part of a valid query because of which the target rejects it. */
import { pageUrl, type PageQuery } from '../../client/page.ts';
import { formatInstant, instant, isMovable, type Instant } from '../../data/instant.ts';
import type { RequirementId } from '../../requirements.ts';

/** The query without one of its parts, each with the requirement for that part. */
export function simplerQueries(query: PageQuery): [RequirementId, PageQuery][] {
  const { from, to, pageSize } = query;
  const rewritten = (text: string, at: Instant): string => (isMovable(at) ? formatInstant(at) : text);
  const plain = (text: string): string => rewritten(text, instant(text));
  const whole = (text: string): string => rewritten(text, { ...instant(text), fraction: '' });
  const simpler: [RequirementId, PageQuery][] = [
    ['4.2-from_id', { ...query, fromId: undefined }],
    ['4.2-pageSize-bounds', { ...query, pageSize: pageSize === undefined ? undefined : 10 }],
    ['4.2-offsets', { ...query, from: plain(from), to: plain(to) }],
    ['4.2-fractions', { ...query, from: whole(from), to: whole(to) }],
  ];
  const same = (a: PageQuery): boolean => pageUrl('', '', a) === pageUrl('', '', query);
  return simpler.filter(([, without]) => !same(without));
}
