/**
 * What one answer under load has to keep, by hand and on runners: read by k6's own JSON selectors, which cost a fraction
 * of a page that is parsed. The kit itself is handed pages as they came, and judges them by all of its observers.
 * Ids of findings are those of the kit's catalogue.
 */
import { compareIds, instantKey } from './instant.ts';

export interface Finding {
  /** The requirement's id, such as `4.2-r4-order`. */
  readonly id: string;
  readonly message: string;
  /** `GET http://…` and `200`, where one request is to blame. */
  readonly request?: string;
  readonly response?: string;
}

export interface PageQuestion {
  readonly url: string;
  readonly tenantId: string;
  /** Bounds and size as the query carries them. */
  readonly from: string;
  readonly to: string;
  readonly pageSize: number;
}

/** Of an answer with k6: header names are looked up without regard to case. */
export interface PageAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | null;
  /** By a selector of gjson; throws where the body is no JSON. */
  json(selector: string): unknown;
}

/** An id beyond 2^53 is no number of k6's: the list as it is written. */
const IDS = 'items.#.id|@tostr';

/** Holds a 200 answer against the request that asked for it. */
export function judgePage(question: PageQuestion, answer: PageAnswer): Finding[] {
  const findings: Finding[] = [];
  const blame = (id: string, message: string): void => {
    if (!findings.some((known) => known.id === id)) findings.push({ id, message });
  };
  let count: unknown;
  try {
    count = answer.json('items.#');
  } catch {
    return [{ id: '4.2-success', message: 'expected a page as JSON, got something else' }];
  }
  if (typeof count !== 'number') return [{ id: '2.4-items', message: 'expected items to be an array' }];
  const links = answer.json('links');
  if (typeof links !== 'object' || links === null)
    return [{ id: '2.4-links', message: 'expected links to be an object' }];
  if (count > question.pageSize)
    blame('2.4-items', `expected at most ${question.pageSize} items, got ${count}`);

  const ids = String(answer.json(IDS)).slice(1, -1).split(',');
  const times = answer.json('items.#.testTime') as unknown[];
  const keys = keysOf(times);
  const odd = keys.findIndex((key) => key === undefined);
  if (times.length < count || odd >= 0)
    blame(
      '2.3-testTime',
      `expected an RFC 3339 date-time, got ${JSON.stringify(times[odd])} in item ${ids[odd]}`,
    );
  if (findings.length > 0) return findings;

  const tenantId = question.tenantId.toLowerCase();
  const tenants = answer.json('items.#.tenantId') as unknown[];
  const foreign = tenants.find((one) => one !== question.tenantId && String(one).toLowerCase() !== tenantId);
  if (foreign !== undefined || tenants.length < count)
    blame('4.2-r3-one-tenant', `expected tenantId ${question.tenantId}, got ${String(foreign)}`);
  for (let index = 1; index < count; index += 1) {
    const [before, key] = [keys[index - 1]!, keys[index]!];
    const order = before < key ? -1 : before > key ? 1 : compareIds(ids[index - 1]!, ids[index]!);
    if (order === 0) blame('4.2-r5-exactly-once', `item ${ids[index]} came twice`);
    if (order > 0)
      blame('4.2-r4-order', `item ${ids[index]} stands after ${ids[index - 1]}, against (testTime, id)`);
  }
  if (count > 0) judgeEdges(question, times as string[], ids, blame);

  const next = answer.json('links.next');
  if (next !== undefined && typeof next !== 'string')
    blame('2.4-next', `expected links.next to be a string, got ${JSON.stringify(next)}`);
  else
    judgeLinks(
      question,
      answer,
      next,
      count === 0 ? undefined : { time: times[count - 1] as string, id: ids[count - 1]! },
      blame,
    );
  return findings;
}

/** Texts of one form sort as they stand, which is what most targets send. */
function keysOf(times: readonly unknown[]): (string | undefined)[] {
  const length = String(times[0]).length;
  const alike = times.every(
    (time) => typeof time === 'string' && time.length === length && time.endsWith('Z'),
  );
  if (alike && instantKey(String(times[0])) !== undefined) return times as string[];
  return times.map((time) => (typeof time === 'string' ? instantKey(time) : undefined));
}

/** What is in order lies in the window where its ends do. */
function judgeEdges(
  { url, from, to }: PageQuestion,
  times: readonly string[],
  ids: readonly string[],
  blame: (id: string, message: string) => void,
): void {
  const [first, last] = [instantKey(times[0]!)!, instantKey(times[times.length - 1]!)!];
  const fromId = parseQuery(url)['from_id'];
  const [fromKey = first, toKey = `${last}0`] = [instantKey(from), instantKey(to)];
  if (first < fromKey) blame('4.2-window', `item ${ids[0]} at ${times[0]} is before from ${from}`);
  if (last >= toKey)
    blame(
      '4.2-to-exclusive',
      `item ${ids[ids.length - 1]} at ${times[times.length - 1]} is not before to ${to}`,
    );
  if (fromId !== undefined && first === fromKey && compareIds(ids[0]!, fromId) <= 0)
    blame(
      '4.2-from_id',
      `a next page begins with item ${ids[0]}, at or before the last item of the page before`,
    );
}

/** Rules 6 and 7 of 4.2. */
function judgeLinks(
  question: PageQuestion,
  answer: PageAnswer,
  next: string | undefined,
  last: { readonly time: string; readonly id: string } | undefined,
  blame: (id: string, message: string) => void,
): void {
  const link = header(answer.headers, 'link');
  const linked = linkedNext(link);
  if (next === undefined) {
    if (linked !== undefined)
      blame('4.2-r7-link-absent', 'the final page carries a Link header with rel="next"');
    return;
  }
  if (linked === undefined) blame('4.2-r7-link', 'links.next is there, and no Link header with rel="next"');
  else if (linked !== next) blame('4.2-r7-link', 'the Link header carries another URL than links.next');
  const query = parseQuery(next);
  if (instantKey(query['to'] ?? '') !== instantKey(question.to)) {
    blame('4.2-r6-next-to', `expected to=${question.to}, got ${query['to']}`);
  }
  if (Number(query['pageSize']) !== question.pageSize) {
    blame('4.2-r6-next-pageSize', `expected pageSize=${question.pageSize}, got ${query['pageSize']}`);
  }
  if (!last) return;
  if (instantKey(query['from'] ?? '') !== instantKey(last.time)) {
    blame('4.2-r6-next-from', `expected from to be the last item's testTime, got ${query['from']}`);
  }
  if (query['from_id'] !== last.id) {
    blame('4.2-r6-next-from_id', `expected from_id=${last.id}, got ${query['from_id']}`);
  }
}

const FORM = '>; rel="next"';

/** What a Link header with rel="next" leads to. */
export function linkedNext(link: string | undefined): string | undefined {
  if (link === undefined) return undefined;
  // The usual form, without an expression that costs as much as all else.
  if (link.startsWith('<') && link.endsWith(FORM) && !link.includes(',')) return link.slice(1, -FORM.length);
  return /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(link)?.[1];
}

/** What RateLimit headers declare. */
export interface RatePolicy {
  readonly limit: number;
  readonly windowSeconds: number;
  /** Only the rest of the window was declared: it is that long at least. */
  readonly atLeast?: true;
}

export interface LimitedVerdict {
  readonly findings: Finding[];
  readonly retryAfterSeconds?: number;
  readonly policy?: RatePolicy;
}

/** A 429 has to say rate_limited somewhere and how long to wait (section 7.2). */
export function judgeLimited(answer: Pick<PageAnswer, 'body' | 'headers'>): LimitedVerdict {
  const findings: Finding[] = [];
  if (!answer.body?.includes('rate_limited')) {
    findings.push({ id: '7.2-rate_limited', message: 'expected code rate_limited in the body of a 429' });
  }
  const retryAfter = header(answer.headers, 'retry-after');
  const retryAfterSeconds = retryAfterOf(retryAfter);
  const policy = policyOf(answer.headers);
  if (retryAfterSeconds === undefined) {
    findings.push({
      id: '7.2-retry-after',
      message: `expected Retry-After in seconds or as a date, got ${retryAfter ?? 'none'}`,
    });
  }
  return {
    findings,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(policy ? { policy } : {}),
  };
}

/**
 * What RateLimit-Policy declares: `"default";q=600;w=60`, or `600;w=60` as in earlier drafts, also within
 * RateLimit-Limit. Of several the one that
 * lets the least through in the long run.
 */
export function policyOf(headers: PageAnswer['headers']): RatePolicy | undefined {
  const text = [header(headers, 'ratelimit-policy'), header(headers, 'ratelimit-limit')].join(',');
  const policies = text.split(',').flatMap((item) => {
    const limit = /;\s*q="?(\d+)/i.exec(item)?.[1] ?? /^\s*(\d+)\s*;/.exec(item)?.[1];
    const seconds = /;\s*w="?(\d+)/i.exec(item)?.[1];
    return Number(limit) > 0 && Number(seconds) > 0
      ? [{ limit: Number(limit), windowSeconds: Number(seconds) }]
      : [];
  });
  return policies.sort((a, b) => a.limit / a.windowSeconds - b.limit / b.windowSeconds)[0] ?? restOf(headers);
}

/** A limit and when it is given anew: `RateLimit: limit=100, reset=30`, RateLimit-Limit and -Reset, or with X-. */
function restOf(headers: PageAnswer['headers']): RatePolicy | undefined {
  const all = header(headers, 'ratelimit') ?? '';
  const value = (name: string): number => {
    const own = header(headers, `ratelimit-${name}`) ?? header(headers, `x-ratelimit-${name}`);
    return Number(
      new RegExp(`\\b${name}=(\\d+)`, 'i').exec(all)?.[1] ?? /^\s*(\d+)/.exec(own ?? '')?.[1] ?? NaN,
    );
  };
  const [limit, reset] = [value('limit'), value('reset')];
  // Some name the moment itself.
  const windowSeconds = reset > 1e9 ? Math.round(reset - Date.now() / 1000) : reset;
  return limit > 0 && windowSeconds > 0 ? { limit, windowSeconds, atLeast: true } : undefined;
}

function retryAfterOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const at = Date.parse(value);
  return /[a-z]/i.test(value) && !Number.isNaN(at)
    ? Math.max(0, Math.ceil((at - Date.now()) / 1000))
    : undefined;
}

export function header(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  for (const key in headers) if (key.toLowerCase() === name) return headers[key];
  return undefined;
}

/** A query's pairs; k6 has no URL. */
export function parseQuery(url: string): Record<string, string> {
  const query: Record<string, string> = {};
  const start = url.indexOf('?');
  if (start < 0) return query;
  for (const pair of url.slice(start + 1).split('&')) {
    const [name = '', value = ''] = pair.split('=', 2);
    try {
      query[decodeURIComponent(name)] = decodeURIComponent(value.replace(/\+/g, ' '));
    } catch {
      query[name] = value;
    }
  }
  return query;
}
