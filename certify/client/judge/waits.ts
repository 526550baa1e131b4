/** Whether a client waits before it asks again: as long as it was told (429), longer each time (5xx). */
import { line, pageRequests, sameAs, type Recorded } from '../record.ts';
import type { ClientFailure } from '../report.ts';
import { finding, type Play } from '../situation.ts';

/** A page that failed again and again, and the waits of the client in between, in milliseconds. */
export interface Series {
  readonly requests: readonly Recorded[];
  readonly waitsMs: readonly number[];
}

/** The failures of each page that was answered so. */
export function seriesOf(requests: readonly Recorded[], failed: (request: Recorded) => boolean): Series[] {
  const byPage = new Map<string, Recorded[]>();
  for (const request of pageRequests(requests)) {
    const key = sameAs(request.request.path);
    byPage.set(key, [...(byPage.get(key) ?? []), request]);
  }
  return [...byPage.values()].flatMap((asked) => {
    const tries = asked.filter(
      (request, index) => failed(request) || (index > 0 && failed(asked[index - 1]!)),
    );
    if (!tries.some(failed)) return [];
    const waitsMs = tries
      .slice(1)
      .flatMap((request, index) => (failed(tries[index]!) ? [request.atMs - tries[index]!.endMs!] : []));
    return [{ requests: tries, waitsMs }];
  });
}

const LEAST_WAITS = 3;
/** Within this equal waits may differ by a machine's unrest. */
const UNREST = 1.35;
/** No backoff at all: what asking again at once takes. */
const AT_ONCE_MS = 30;
/** So many times longer than the client's own pauses a wait has to be, for its length to be meant. */
const MEANT = 4;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const listed = (waitsMs: readonly number[]): string =>
  `${waitsMs.slice(0, 6).map(seconds).join(', ')}${waitsMs.length > 6 ? ' …' : ''}`;

/** Neither longer each time nor spread as by jitter. */
const isEven = ({ waitsMs }: Series): boolean =>
  Math.max(...waitsMs) < UNREST * Math.min(...waitsMs) &&
  waitsMs.some((wait, index) => index > 0 && wait < 1.05 * waitsMs[index - 1]!);

/** The longest pause between a page and the next request: the client's own work, and the machine's unrest. */
function longestPauseMs(requests: readonly Recorded[]): number {
  const asked = pageRequests(requests);
  const pauses = asked.flatMap(({ atMs }, index) => {
    const before = asked[index - 1];
    return before?.status === 200 ? [atMs - before.endMs!] : [];
  });
  return pauses.length === 0 ? Infinity : Math.max(...pauses);
}

/**
 * Equal waits are no exponential backoff. A few of them may be jitter's chance, so it takes every series, and five
 * waits in all; a cap that a growing wait has reached, is allowed. Where a machine is so busy that its own pauses
 * hide the waits, nothing is said.
 */
export function backoffFindings({ requests }: Pick<Play, 'requests'>): ClientFailure[] {
  const long = seriesOf(requests, ({ status }) => status >= 500).filter(
    ({ waitsMs }) => waitsMs.length >= LEAST_WAITS,
  );
  const waits = long.flatMap(({ waitsMs }) => waitsMs);
  if (waits.length < 5) return [];
  if (Math.max(...waits) < AT_ONCE_MS) return [equal(long[0]!, 'asked again at once each time')];
  const meant = Math.min(...waits) > MEANT * longestPauseMs(requests);
  return meant && long.every(isEven) ? [equal(long[0]!, 'waits that do not grow')] : [];
}

const equal = ({ requests, waitsMs }: Series, what: string): ClientFailure =>
  finding(
    'waits that grow from one retry to the next (exponential backoff)',
    `${what}: ${listed(waitsMs)}`,
    requests.slice(0, 8).map(line),
  );

/** Clocks and timers may be so far ahead. */
const EARLY_MS = 100;

/**
 * A page asked for again before the time that a 429 named. Those that were under way when it was answered, did not
 * know, and walkers side by side need not know of one another.
 */
export function tooEarly({ requests }: Pick<Play, 'requests'>): ClientFailure[] {
  const asked = pageRequests(requests);
  for (const limited of asked.filter(({ status }) => status === 429)) {
    const { endMs = 0, waitUntilMs = 0 } = limited;
    const page = sameAs(limited.request.path);
    const early = asked.find(
      ({ atMs, request }) => atMs > endMs && atMs < waitUntilMs - EARLY_MS && sameAs(request.path) === page,
    );
    if (!early) continue;
    return [
      finding(
        `no request for ${seconds(waitUntilMs - endMs)} after the 429, as Retry-After says`,
        `the next one after ${seconds(early.atMs - endMs)}`,
        [limited, early].map(line),
      ),
    ];
  }
  return [];
}

/** Requests that repeat one which was refused for good. */
export function repeatedRefusals(requests: readonly Recorded[], status: number): Recorded[] {
  return seriesOf(requests, (request) => request.status === status)
    .map((series) => series.requests)
    .reduce<Recorded[]>((most, one) => (one.length > most.length ? [...one] : most), []);
}
