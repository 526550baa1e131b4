/**
 * What one answer under load has to keep, checked without looking anything up: fast but wrong is wrong.
 * Runs in k6 and in Node alike. Ids of findings are those of the kit's catalogue.
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

/** The (testTime, id) pair that a page has to begin behind. */
export interface Cursor {
  readonly key: string;
  readonly id: string;
}

/** By (testTime, id). */
export const compareCursors = (a: Cursor, b: Cursor): number =>
  a.key < b.key ? -1 : a.key > b.key ? 1 : compareIds(a.id, b.id);

export interface PageQuestion {
  readonly url: string;
  readonly tenantId: string;
  /** Bounds and size as the query carries them. */
  readonly from: string;
  readonly to: string;
  readonly pageSize: number;
  /** The last item of the page before, when this is a next page. */
  readonly after?: Cursor | undefined;
}

export interface PageAnswer {
  readonly status: number;
  readonly body: string;
  /** Header names as the generator spells them: looked up without regard to case. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface PageVerdict {
  readonly findings: readonly Finding[];
  readonly next?: string | undefined;
  readonly first?: Cursor | undefined;
  readonly last?: Cursor | undefined;
  readonly items: number;
}

interface Page {
  readonly items: readonly { readonly id: string; readonly tenantId: unknown; readonly testTime: unknown }[];
  readonly links: { readonly next?: unknown };
}

/** Holds a 200 answer against the request that asked for it. */
export function judgePage(question: PageQuestion, answer: PageAnswer): PageVerdict {
  const findings: Finding[] = [];
  const blame = (id: string, message: string): void => {
    if (!findings.some((known) => known.id === id)) findings.push({ id, message });
  };
  const page = readPage(answer.body);
  if ('findings' in page) return page;

  const from = instantKey(question.from);
  const to = instantKey(question.to);
  let before = question.after;
  for (const { id, tenantId, testTime } of page.items) {
    const key = typeof testTime === 'string' ? instantKey(testTime) : undefined;
    if (key === undefined) {
      blame('2.3-testTime', `expected an RFC 3339 date-time, got ${JSON.stringify(testTime)} in item ${id}`);
      continue;
    }
    if (
      tenantId !== question.tenantId &&
      String(tenantId).toLowerCase() !== question.tenantId.toLowerCase()
    ) {
      blame(
        '4.2-r3-one-tenant',
        `expected tenantId ${question.tenantId}, got ${String(tenantId)} in item ${id}`,
      );
    }
    if (from !== undefined && key < from)
      blame('4.2-window', `item ${id} at ${String(testTime)} is before from ${question.from}`);
    if (to !== undefined && key >= to)
      blame('4.2-to-exclusive', `item ${id} at ${String(testTime)} is not before to ${question.to}`);
    if (before) {
      const order = compareCursors({ key, id }, before);
      if (order === 0) blame('4.2-r5-exactly-once', `item ${id} came twice`);
      else if (order < 0 && before === question.after) {
        blame(
          '4.2-r5-exactly-once',
          `a next page begins with item ${id}, at or before the last item of the page before`,
        );
      } else if (order < 0)
        blame('4.2-r4-order', `item ${id} stands behind ${before.id}, against (testTime, id)`);
    }
    before = { key, id };
  }
  if (page.items.length > question.pageSize) {
    blame('2.4-items', `expected at most ${question.pageSize} items, got ${page.items.length}`);
  }

  const { next } = page.links;
  if (next !== undefined && typeof next !== 'string') {
    blame('2.4-next', `expected links.next to be a string, got ${JSON.stringify(next)}`);
    return { findings, items: page.items.length };
  }
  const [first, last] = [cursorOf(page.items[0]), cursorOf(page.items[page.items.length - 1])];
  judgeLinks(question, answer, next, last, blame);
  return { findings, next, first, last, items: page.items.length };
}

function cursorOf(item: Page['items'][number] | undefined): Cursor | undefined {
  const key = typeof item?.testTime === 'string' ? instantKey(item.testTime) : undefined;
  return item && key !== undefined ? { key, id: item.id } : undefined;
}

/** What a valid request may be refused with while the target is made to fail (section 7.2). */
export function judgeRefused({ status, body }: PageAnswer): Finding[] {
  if (status === 500 || status === 503)
    return /internal_error|service_unavailable/.test(body)
      ? []
      : [
          {
            id: '7.2-body',
            message: `expected internal_error or service_unavailable in the body of a ${status}`,
          },
        ];
  return status >= 400 && status < 500 && status !== 401
    ? [{ id: '7.2-server-error', message: `expected 5xx or a page for a valid request, got ${status}` }]
    : [];
}

/** Rules 6 and 7 of 4.2. */
function judgeLinks(
  question: PageQuestion,
  answer: PageAnswer,
  next: string | undefined,
  last: Cursor | undefined,
  blame: (id: string, message: string) => void,
): void {
  const link = header(answer.headers, 'link');
  const linked = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(link ?? '')?.[1];
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
  if (instantKey(query['from'] ?? '') !== last.key) {
    blame('4.2-r6-next-from', `expected from to be the last item's testTime, got ${query['from']}`);
  }
  if (query['from_id'] !== last.id) {
    blame('4.2-r6-next-from_id', `expected from_id=${last.id}, got ${query['from_id']}`);
  }
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
export function judgeLimited(answer: PageAnswer): LimitedVerdict {
  const findings: Finding[] = [];
  if (!answer.body.includes('rate_limited')) {
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

/** The page, or what is wrong with its form. Ids of 16 digits and more are kept as text, so that none is rounded. */
function readPage(body: string): Page | PageVerdict {
  const broken = (id: string, message: string): PageVerdict => ({ findings: [{ id, message }], items: 0 });
  let json: { items?: unknown; links?: unknown };
  try {
    json = JSON.parse(body.replace(/"id"\s*:\s*(-?\d{16,})(\s*[,}])/g, '"id":"$1"$2')) as typeof json;
  } catch {
    return broken('4.2-success', 'expected a page as JSON, got something else');
  }
  if (!Array.isArray(json?.items)) return broken('2.4-items', 'expected items to be an array');
  if (typeof json.links !== 'object' || json.links === null)
    return broken('2.4-links', 'expected links to be an object');
  const items = (json.items as Record<string, unknown>[]).map((item) => ({
    id: String(item?.['id']),
    tenantId: item?.['tenantId'],
    testTime: item?.['testTime'],
  }));
  return { items, links: json.links as { next?: unknown } };
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
