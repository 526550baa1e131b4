/**
 * Judges one answer under load, by hand and on runners, with k6's JSON selectors, which cost a fraction of parsing
 * the page. The kit itself judges recorded pages with all of its observers. Ids of findings are those of the kit's
 * catalogue.
 */
import type { RatePolicy } from '../../estimate/step.ts';
import { compareIds, instantKey } from './window.ts';

export interface Finding {
  /** The requirement's id, such as `4.2-r4-order`. */
  readonly id: string;
  readonly message: string;
  /** `GET http://…` and `200`, if one request shows the finding. */
  readonly request?: string;
  readonly response?: string;
}

/** An answer in k6, with case-insensitive header lookup. */
export interface PageAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | null;
  /** Evaluates a gjson selector; throws if the body is not JSON. */
  json(selector: string): unknown;
}

/** k6 rounds ids beyond 2^53, so the list is read as text. */
const IDS = 'items.#.id|@tostr';

/** Judges a 200 answer to `url`; returns the first finding of each requirement. */
export function judgePage(url: string, answer: PageAnswer): Finding[] {
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

  const findings: Finding[] = [];
  const flag = (id: string, message: string): void => {
    if (!findings.some((known) => known.id === id)) findings.push({ id, message });
  };
  const { from = '', to = '', from_id: fromId, pageSize } = parseQuery(url);
  const ids = String(answer.json(IDS)).slice(1, -1).split(',');
  const times = answer.json('items.#.testTime') as unknown[];
  const keys = times.map((time) => (typeof time === 'string' ? instantKey(time) : undefined));
  const odd = keys.findIndex((key) => key === undefined);
  if (count > Number(pageSize)) flag('2.4-items', `expected at most ${pageSize} items, got ${count}`);
  if (times.length < count || odd >= 0)
    flag('2.3-testTime', `expected an RFC 3339 date-time, got ${say(times[odd])} in item ${ids[odd]}`);
  if (findings.length > 0) return findings;

  const tenantId = /\/tenants\/([^/?]+)/.exec(url)?.[1] ?? '';
  const tenants = answer.json('items.#.tenantId') as unknown[];
  const foreign = tenants.find((id) => String(id).toLowerCase() !== tenantId.toLowerCase());
  if (foreign !== undefined || tenants.length < count)
    flag('4.2-r3-one-tenant', `expected tenantId ${tenantId}, got ${say(foreign)}`);
  for (let index = 1; index < count; index += 1) {
    const [before, key, previous, id] = [keys[index - 1]!, keys[index]!, ids[index - 1]!, ids[index]!];
    const order = before < key ? -1 : before > key ? 1 : compareIds(previous, id);
    if (order === 0) flag('4.2-r5-exactly-once', `item ${id} occurs twice`);
    if (order > 0)
      flag('4.2-r4-order', `item ${id} follows item ${previous}, which violates the order by (testTime, id)`);
  }
  const last = { id: ids[count - 1]!, time: String(times[count - 1]) };
  if (count > 0) {
    // Ordered items are in the window if the first and the last are.
    const [firstKey, lastKey] = [instantKey(String(times[0]))!, instantKey(last.time)!];
    const fromKey = instantKey(from) ?? firstKey;
    if (firstKey < fromKey) flag('4.2-window', `item ${ids[0]} at ${times[0]} is before from ${from}`);
    if (lastKey >= (instantKey(to) ?? `${lastKey}0`))
      flag('4.2-to-exclusive', `item ${last.id} at ${last.time} is not before to ${to}`);
    if (fromId !== undefined && firstKey === fromKey && compareIds(ids[0]!, fromId) <= 0)
      flag('4.2-from_id', `a next page begins with item ${ids[0]}, not after item ${fromId}`);
  }

  // Rules 6 and 7 of 4.2.
  const next = answer.json('links.next');
  const linked = linkedNext(header(answer.headers, 'link'), url);
  if (next === undefined) {
    if (linked !== undefined)
      flag('4.2-r7-link-absent', 'the final page carries a Link header with rel="next"');
    return findings;
  }
  if (typeof next !== 'string') {
    flag('2.4-next', `expected links.next to be a string, got ${say(next)}`);
    return findings;
  }
  if (linked === undefined || !isSameUrl(linked, next, url))
    flag('4.2-r7-link', `expected Link with rel="next" to ${next}, got ${say(linked)}`);
  const given = parseQuery(next);
  const at = (text = ''): string | undefined => instantKey(text);
  const expected: readonly (readonly [string, string | undefined, isSame: boolean])[] = [
    ['to', to, at(given['to']) === at(to)],
    ['pageSize', pageSize, Number(given['pageSize']) === Number(pageSize)],
    ['from', last.time, count === 0 || at(given['from']) === at(last.time)],
    ['from_id', last.id, count === 0 || given['from_id'] === last.id],
  ];
  for (const [name, value, isSame] of expected)
    if (!isSame) flag(`4.2-r6-next-${name}`, `expected next to have ${name}=${value}, got ${given[name]}`);
  return findings;
}

const say = (value: unknown): string => JSON.stringify(value) ?? 'nothing';

const FORM = '>; rel="next"';

/** Returns the target of a Link header with rel="next" of the page at `url`, as it is spelled. */
export function linkedNext(link: string | undefined, url: string): string | undefined {
  if (link === undefined) return undefined;
  // Fast path for the usual form: a regular expression costs as much as everything else.
  if (link.startsWith('<') && link.endsWith(FORM) && !link.includes(',')) return link.slice(1, -FORM.length);
  for (const [, target, parameters = ''] of link.matchAll(/<([^>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*("[^"]*"|[^\s;,]*)/i.exec(parameters)?.[1] ?? '';
    // With an anchor, it may be a link of another resource (RFC 8288, 3.2).
    const anchor = /;\s*anchor\s*=\s*"?([^"\s;,]*)/i.exec(parameters)?.[1] || url;
    if (/(^|[" ])next([" ]|$)/i.test(relations) && pathOf(resolved(anchor, url)) === pathOf(url))
      return target;
  }
  return undefined;
}

const pathOf = (url: string): string => url.split('?')[0]!.toLowerCase();

export const originOf = (url: string): string => /^https?:\/\/[^/?#@]+/i.exec(url)?.[0].toLowerCase() ?? '';

/** Makes a reference absolute if it is relative to the origin or the path; k6 has no URL class. */
export function resolved(reference: string, url: string): string {
  if (/^\/(?!\/)/.test(reference)) return `${originOf(url)}${reference}`;
  return reference.startsWith('?') ? `${url.split('?')[0]}${reference}` : reference;
}

/** Whether both are one URL, in any spelling. */
function isSameUrl(one: string, other: string, base: string): boolean {
  const spelled = (reference: string): string => {
    const absolute = resolved(reference, base);
    const path = pathOf(absolute).replace(/:(80|443)\//, '/');
    return JSON.stringify([path, Object.entries(parseQuery(absolute)).sort()]);
  };
  return one === other || spelled(one) === spelled(other);
}

/** A 429 must have the code rate_limited and Retry-After (section 7.2). */
export function judgeLimited(answer: Pick<PageAnswer, 'body' | 'headers'>): Finding[] {
  const findings: Finding[] = [];
  if (!answer.body?.includes('rate_limited'))
    findings.push({ id: '7.2-rate_limited', message: 'expected code rate_limited in the body of a 429' });
  if (retryAfterOf(answer.headers) === undefined) {
    const got = header(answer.headers, 'retry-after') ?? 'none';
    const message = `expected Retry-After in seconds or as a date, got ${got}`;
    findings.push({ id: '7.2-retry-after', message });
  }
  return findings;
}

/**
 * The limit that the headers declare: RateLimit-Policy (`"default";q=600;w=60`, or `600;w=60` as in earlier drafts,
 * also within RateLimit-Limit), else a limit and its reset (`RateLimit: limit=100, reset=30`, or RateLimit-Limit and
 * -Reset, also with X-). Of several policies returns the one with the lowest rate.
 */
export function policyOf(headers: PageAnswer['headers']): RatePolicy | undefined {
  const given: Record<string, string> = {};
  for (const name in headers) {
    const key = name.toLowerCase();
    if (key.includes('ratelimit')) given[key.replace(/^x-/, '')] = headers[name]!;
  }
  // Most servers declare none; the regular expressions cost as much as a page.
  if (Object.keys(given).length === 0) return undefined;
  const all = [given['ratelimit-policy'], given['ratelimit-limit']].join(',');
  const policies = all.split(',').flatMap((item) => {
    const limit = Number(/;\s*q="?(\d+)/i.exec(item)?.[1] ?? /^\s*(\d+)\s*;/.exec(item)?.[1]);
    const windowSeconds = Number(/;\s*w="?(\d+)/i.exec(item)?.[1]);
    return limit > 0 && windowSeconds > 0 ? [{ limit, windowSeconds }] : [];
  });
  if (policies.length > 0)
    return policies.sort((a, b) => a.limit / a.windowSeconds - b.limit / b.windowSeconds)[0];
  const value = (name: string): number => {
    const own = new RegExp(`\\b${name}=(\\d+)`, 'i').exec(given['ratelimit'] ?? '')?.[1];
    return Number(own ?? /^\s*(\d+)/.exec(given[`ratelimit-${name}`] ?? '')?.[1]);
  };
  const [limit, reset] = [value('limit'), value('reset')];
  // Some servers send the moment of the reset.
  const windowSeconds = reset > 1e9 ? Math.round(reset - Date.now() / 1000) : reset;
  return limit > 0 && windowSeconds > 0 ? { limit, windowSeconds, atLeast: true } : undefined;
}

export function retryAfterOf(headers: PageAnswer['headers']): number | undefined {
  const value = header(headers, 'retry-after');
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const at = Date.parse(value);
  if (!/[a-z]/i.test(value) || Number.isNaN(at)) return undefined;
  return Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

function header(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  for (const key in headers) if (key.toLowerCase() === name) return headers[key];
  return undefined;
}

/** Parses a query; k6 has no URL class. Keeps a raw + (RFC 3986, 3.4): a target that reads a blank rejects the page. */
export function parseQuery(url: string): Record<string, string> {
  const query: Record<string, string> = {};
  const start = url.indexOf('?');
  if (start < 0) return query;
  for (const pair of url.slice(start + 1).split('&')) {
    const [name = '', value = ''] = pair.split('=', 2);
    try {
      query[decodeURIComponent(name)] = decodeURIComponent(value);
    } catch {
      query[name] = value;
    }
  }
  return query;
}
