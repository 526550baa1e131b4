/** Judges waits before retries, which are as long as Retry-After says (429) or grow (5xx); the use of tokens; and `next`. */
import { integerOf, member } from '../../engine/client/json.ts';
import { laterMints, mints, pageRequests, normalized, type Recorded } from './record.ts';
import type { ClientFailure } from './report.ts';
import { finding, unless, type Play } from './situation.ts';
import { several } from '../render/results.ts';
import type { ServiceRequest } from '../../reference-server/http/http.ts';
import { queryOf } from '../../reference-server/run/alter.ts';

/** The requests for a page that failed repeatedly, and the client's waits between them, in milliseconds. */
interface Series {
  readonly requests: readonly Recorded[];
  readonly waitsMs: readonly number[];
}

export function seriesOf(requests: readonly Recorded[], failed: (request: Recorded) => boolean): Series[] {
  const byPage = new Map<string, Recorded[]>();
  for (const request of pageRequests(requests)) {
    const key = normalized(request.request.path);
    byPage.set(key, [...(byPage.get(key) ?? []), request]);
  }
  return [...byPage.values()].flatMap((asked) => {
    const tries = asked.filter((one, index) => failed(one) || (index > 0 && failed(asked[index - 1]!)));
    if (!tries.some(failed)) return [];
    const waitsMs = tries
      .slice(1)
      .flatMap((request, index) => (failed(tries[index]!) ? [request.atMs - tries[index]!.endMs!] : []));
    return [{ requests: tries, waitsMs }];
  });
}

const LEAST_WAITS = 3;
/** Equal waits may differ by this factor because of the machine. */
const TOLERANCE = 1.35;
/** Below this, a retry counts as immediate. */
const AT_ONCE_MS = 30;
/** A wait is judged only if it is this many times longer than the client's own pauses. */
const LEAST_RATIO = 4;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const listed = (waitsMs: readonly number[]): string =>
  `${waitsMs.slice(0, 6).map(seconds).join(', ')}${waitsMs.length > 6 ? ' …' : ''}`;

/** Neither growing nor spread by jitter. */
const isEven = ({ waitsMs }: Series): boolean =>
  Math.max(...waitsMs) < TOLERANCE * Math.min(...waitsMs) &&
  waitsMs.some((wait, index) => index > 0 && wait < 1.05 * waitsMs[index - 1]!);

/** The longest pause between a page and the next request: the client's own work and delays of the machine. */
function longestPauseMs(requests: readonly Recorded[]): number {
  const asked = pageRequests(requests);
  const pauses = asked.flatMap(({ atMs }, index) => {
    const before = asked[index - 1];
    return before?.status === 200 ? [atMs - before.endMs!] : [];
  });
  return pauses.length === 0 ? Infinity : Math.max(...pauses);
}

/**
 * Reports constant waits, which are not exponential backoff. Jitter may produce a few by chance, so all series must
 * be constant, with at least five waits; growing up to a cap is allowed. On a machine so busy that its pauses hide
 * the waits, nothing is reported.
 */
export function backoffFindings({ requests }: Pick<Play, 'requests'>): ClientFailure[] {
  const long = seriesOf(requests, ({ status }) => status >= 500).filter(
    ({ waitsMs }) => waitsMs.length >= LEAST_WAITS,
  );
  const waits = long.flatMap(({ waitsMs }) => waitsMs);
  if (waits.length < 5) return [];
  if (Math.max(...waits) < AT_ONCE_MS) return [equal(long[0]!, 'immediate retries each time')];
  const meant = Math.min(...waits) > LEAST_RATIO * longestPauseMs(requests);
  return meant && long.every(isEven) ? [equal(long[0]!, 'waits that do not grow')] : [];
}

function equal({ requests, waitsMs }: Series, what: string): ClientFailure {
  const expected = 'waits that grow from one retry to the next (exponential backoff)';
  return finding(expected, `${what}: ${listed(waitsMs)}`, requests.slice(0, 8));
}

/** Tolerance for inaccurate clocks and timers. */
export const EARLY_MS = 100;

/** A page requested again before the time that a 429 named. Requests in flight and those for other pages are allowed. */
export function tooEarly({ requests }: Pick<Play, 'requests'>): ClientFailure[] {
  const asked = pageRequests(requests);
  for (const limited of asked.filter(({ status }) => status === 429)) {
    const { endMs = 0, waitUntilMs = 0 } = limited;
    const page = normalized(limited.request.path);
    const early = asked.find(
      ({ atMs, request }) =>
        atMs > endMs && atMs < waitUntilMs - EARLY_MS && normalized(request.path) === page,
    );
    const expected = `no request for ${seconds(waitUntilMs - endMs)} after the 429, as Retry-After says`;
    if (early)
      return [finding(expected, `the next one after ${seconds(early.atMs - endMs)}`, [limited, early])];
  }
  return [];
}

/** SHOULD: the specification does not forbid a retry of what it calls final. */
export function retryFindings(
  requests: readonly Recorded[],
  status: number,
  most: 0 | 1,
  aside = '',
): readonly ClientFailure[] {
  const [longest] = seriesOf(requests, (request) => request.status === status)
    .map((series) => series.requests)
    .sort((one, other) => other.length - one.length);
  const retries = (longest?.length ?? 1) - 1;
  const expected = `${most === 0 ? 'no' : 'one'} retry of a request that is answered ${status}`;
  const received = `${several(retries, 'retry', 'retries')}${aside}`;
  return unless(retries <= most, expected, received, longest?.slice(0, 8), 'SHOULD');
}

/** Reports a client that mints a token for no more than this number of requests, on average. */
export const reuseFindings =
  (requestsPerToken: number) =>
  ({ requests }: Pick<Play, 'requests'>): readonly ClientFailure[] => {
    const [pages, minted] = [pageRequests(requests).length, mints(requests)];
    const isReused = requestsPerToken * laterMints(requests).length < pages;
    const expected = `one token, reused, for ${several(pages, 'request')}`;
    return unless(isReused, expected, several(minted.length, 'token request'), minted.slice(0, 5));
  };

// -- whether a walk followed the URLs that it was given (section 4.2, rule 5) ----------------------

/**
 * Allows retries, equivalent spellings of a URL, and further walks: they begin without from_id, or after the last item
 * of a walk that has ended.
 */
export function followFindings({ requests }: Play): ClientFailure[] {
  const given = new Set<string>();
  const ends = new Set<string>();
  let before: Recorded | undefined;
  for (const request of pageRequests(requests)) {
    const query = queryOf(request.request);
    const begins = !query.has('from_id') || ends.has(cursor(query.get('from'), query.get('from_id')));
    if (!begins && !given.has(normalized(request.request.path))) return [rebuilt(request, before)];
    if (!request.page) continue;
    const { next, items } = request.page;
    const last = items.at(-1);
    if (next !== undefined) {
      given.add(normalized(next));
      before = request;
    } else if (last) ends.add(cursor(member(last, 'testTime'), integerOf(member(last, 'id'))));
  }
  return [];
}

const cursor = (from: unknown, id: unknown): string =>
  normalized(`?${new URLSearchParams({ from: String(from), from_id: String(id) })}`);

const pathOf = (url: string): string => url.replace(/^[a-z]+:\/\/[^/]+/i, '');

function rebuilt(request: Recorded, before: Recorded | undefined): ClientFailure {
  const next = before?.page?.next;
  if (next === undefined)
    return finding('a walk that begins with from and to', 'a from_id of the client’s own', [request]);
  const received = `another URL: ${differences(next, request.request)}`;
  return finding(`next to be followed as given: ${pathOf(next)}`, received, [before!, request]);
}

function differences(next: string, asked: ServiceRequest): string {
  const given = new URL(next).searchParams;
  const own = queryOf(asked);
  const names = [...new Set([...given.keys(), ...own.keys()])];
  const words = names.flatMap((name) => {
    if (!own.has(name)) return [`${name} left out`];
    if (!given.has(name)) return [`${name} added`];
    return given.get(name) === own.get(name) ? [] : [`${name} changed to ${own.get(name)}`];
  });
  return words.join(', ') || asked.path;
}
