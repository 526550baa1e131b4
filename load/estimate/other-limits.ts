/**
 * Limits that are no rate limits. A concurrency limit answers 429 as a quota does, but what it admits depends on how long
 * answers take: rejections follow from the number of requests in flight. A shaper delays requests instead of rejecting
 * them: what it holds back comes out at an even pace. A limit of items or bytes rejects full pages earlier than empty ones.
 */
import { ascending, largest, quantile, smallest } from './numbers.ts';
import { type Sample, sentMsOf } from './step.ts';
import type { Observation, Reply } from './limiter-probe.ts';

/** Least number of rejections of Poisson arrivals to judge. */
const LEAST_REFUSED = 30;
/** Share of admissions that must lie below the limit, and of rejections that must lie at it, within a tolerance. */
const [LEAST_SHARE, TOLERANCE] = [0.95, 0.1];

type Sent = Pick<Reply, 'sentMs' | 'rttMs' | 'ok'>;

/** The concurrency limit that explains the 429 answers; undefined if none does. */
export function concurrencyLimitOf(samples: readonly Sample[]): number | undefined {
  const sent = samples.map((of) => ({ sentMs: sentMsOf(of), rttMs: of.serviceMs, ok: of.status !== 429 }));
  sent.sort((a, b) => a.sentMs - b.sentMs || Number(b.ok) - Number(a.ok));
  return findConcurrencyLimit(sent, LEAST_REFUSED);
}

/** Like concurrencyLimitOf, for requests in the order of their decisions; needs at least leastRefused rejections. */
export function findConcurrencyLimit(sent: readonly Sent[], leastRefused: number): number | undefined {
  const refusals = sent.flatMap(({ ok, rttMs }) => (ok ? [] : [rttMs]));
  if (refusals.length < leastRefused) return undefined;
  // A request in transit does not count at the target. The quickest rejection is an upper bound of the transit time.
  const mostMs = smallest(refusals);
  return [mostMs, mostMs / 2, 0]
    .map((transitMs) => separatingCount(sent, transitMs))
    .find((limit) => limit !== undefined);
}

/** The number of requests in flight that separates rejections from admissions. */
function separatingCount(sent: readonly Sent[], transitMs: number): number | undefined {
  const refused: number[] = [];
  const passed: number[] = [];
  let inFlight: number[] = [];
  for (const { sentMs, rttMs, ok } of sent) {
    inFlight = inFlight.filter((doneMs) => doneMs > sentMs);
    (ok ? passed : refused).push(inFlight.length);
    if (ok) inFlight.push(sentMs + rttMs - transitMs);
  }
  const limit = quantile(ascending(refused), 0.5);
  // The neighbours of a small limit are other limits: one request in a round trip looks like one or two at a time.
  const tolerance = limit < 4 ? 0 : Math.max(1, TOLERANCE * limit);
  const share = (counts: readonly number[], test: (count: number) => boolean): number =>
    counts.filter(test).length / counts.length;
  // Without tolerance: for a limit of one or two, the adjacent count is already on the other side.
  const below = share(passed, (count) => count < limit);
  const around = share(refused, (count) => Math.abs(count - limit) <= tolerance);
  return limit >= 1 && below >= LEAST_SHARE && around >= LEAST_SHARE ? limit : undefined;
}

export interface Shaper {
  readonly ratePerSecond: number;
  /** Maximum number of requests held back; the length of the queue if further ones are rejected. */
  readonly heldBack: number;
  /** Whether a server with a single worker would look the same over this round trip. */
  readonly orOneWorker: boolean;
}

/** Delay over the quickest answer from which a request counts as held back, and the least number of such requests. */
const [HELD_MS, LEAST_HELD] = [40, 12];
/** Answers that come out together after a pause of the target have no pace. */
const LEAST_PACE_MS = 5;
/** Maximum relative variation of the pace: a queue with random service times varies more. */
const EVEN = 0.35;

export function shaperOf(seen: readonly Observation[]): Shaper | undefined {
  const times = seen.filter(({ ok }) => ok);
  const quickest = smallest(times.map(({ rttMs }) => rttMs));
  const mostMs = largest(times.map(({ rttMs }) => rttMs)) - quickest;
  const doneMs = ({ sentMs, rttMs }: Reply): number => sentMs + rttMs;
  // A full queue rejects; another limit also rejects when no request is held back.
  const queuedMs = seen
    .filter(({ ok }) => !ok)
    .map(({ sentMs }) => largest(times.map((one) => (one.sentMs <= sentMs ? doneMs(one) : 0))) - sentMs);
  if (quantile(ascending(queuedMs), 0.2) - quickest < mostMs / 2) return undefined;
  const departures = [...times].sort((a, b) => doneMs(a) - doneMs(b));
  // Each request that is held back departs one pace after the one before it.
  const gaps = ascending(
    departures
      .slice(1)
      .flatMap((one, index) =>
        one.rttMs > quickest + HELD_MS ? [doneMs(one) - doneMs(departures[index]!)] : [],
      ),
  );
  if (gaps.length < LEAST_HELD || gaps.length < times.length * 0.3) return undefined;
  const paceMs = gaps[gaps.length >> 1]!;
  const spreadMs = (gaps[Math.floor(gaps.length * 0.8)]! - gaps[Math.floor(gaps.length * 0.2)]!) / 2;
  if (paceMs < LEAST_PACE_MS || spreadMs > EVEN * paceMs) return undefined;
  const ratePerSecond = Number((1000 / paceMs).toPrecision(3));
  // A single worker is as even, but each of its answers takes at least the pace.
  return { ratePerSecond, heldBack: Math.round(mostMs / paceMs), orOneWorker: quickest >= paceMs * 0.95 };
}

/** Delays are equal if they differ by a smaller share. */
const ALIKE_DELAYS = 0.1;
/** Significance level: random delays would follow the quick answers with this probability. */
const BY_CHANCE = 0.01;
/** Pauses that are no chance: their number, and how much longer they are than the first answers, of few at a time. */
const [PAUSES, FIRST, LONGER] = [3, 7, 3];
const LEAST_PAUSE_MS = 240;

/**
 * Whether a limit may delay answers instead of rejecting them: none before a number of them, and by the same time, or
 * while the target answers nothing, although many requests wait.
 */
export function isDelayedByLimit(seen: readonly Observation[]): boolean {
  const quickest = smallest(seen.map(({ rttMs }) => rttMs));
  const delays = seen.map(({ rttMs }) => rttMs - quickest);
  const held = ascending(delays.filter((ms) => ms > HELD_MS));
  if (held.length < LEAST_HELD) return false;
  const before = delays.findIndex((ms) => ms > HELD_MS);
  const isRandom = (1 - held.length / seen.length) ** before > BY_CHANCE;
  const areAlike = quantile(held, 0.9) < (1 + ALIKE_DELAYS) * quantile(held, 0.1);
  return !isRandom && (areAlike || pausesOf(seen) >= PAUSES);
}

/** The number of times that the target answered nothing for long, although many requests waited. */
function pausesOf(seen: readonly Observation[]): number {
  const endsMs = ascending(seen.map(({ sentMs, rttMs }) => sentMs + rttMs));
  const leastMs = LEAST_PAUSE_MS + LONGER * largest(seen.slice(0, FIRST).map(({ rttMs }) => rttMs));
  const waiting = (ended: number): number =>
    seen.filter(({ sentMs }) => sentMs <= endsMs[ended]!).length - ended - 1;
  return endsMs.filter((_, at) => endsMs[at + 1]! - endsMs[at]! > leastMs && waiting(at) >= LEAST_HELD)
    .length;
}

/** Number of full pages, such as a back-fill reads. */
const FULL_PAGES = 100;
/** The limit counts requests if at most this many more empty pages are admitted than full ones. */
const ALIKE = 1;
/** Tuned: empty pages for each admitted full page; all of them must be admitted if the limit counts items or bytes. */
export const FULL = { more: 1.5 };

/** Pages that one client read in succession, until one was rejected. */
export interface PagesRead {
  readonly admitted: number;
  readonly isRejected: boolean;
  readonly retryAfterSeconds?: number | undefined;
  readonly items: number;
  readonly bytes: number;
}

export interface FullPages extends PagesRead {
  /** What the limit counts: requests, if it rejects empty pages as early as full ones. Absent without a rejection. */
  readonly unit?: 'requests' | 'items-or-bytes' | 'cannot-tell';
  /** Number of empty pages that were admitted after a rejection of full ones. */
  readonly emptyAdmitted?: number;
}

/** The most pages that the comparison requests. */
export const MOST_PAGES = FULL_PAGES + Math.ceil(FULL.more * FULL_PAGES);

/**
 * `read` waits until the limiter has reset and `afterSeconds` have passed, and then reads at most `count` pages.
 * `fromRest`: number of empty pages that the limiter admitted after a pause, without waiting for a refill; pages read in
 * succession may last longer than a window. Undefined if it admitted no full page.
 */
export async function compareFullPages(
  read: (isFull: boolean, count: number, afterSeconds: number) => Promise<PagesRead | undefined>,
  fromRest = Infinity,
): Promise<FullPages | undefined> {
  const full = await read(true, FULL_PAGES, 0);
  if (!full || full.admitted === 0 || full.items === 0) return undefined;
  if (!full.isRejected) return full;
  const alike = full.admitted + ALIKE;
  if (fromRest <= alike) return { ...full, unit: 'requests' };
  const count = Math.ceil(FULL.more * full.admitted);
  const empty = await read(false, count, full.retryAfterSeconds ?? 0);
  if (!empty) return undefined;
  const emptyAdmitted = Math.min(empty.admitted, fromRest);
  const unit = emptyAdmitted <= alike ? 'requests' : emptyAdmitted < count ? 'cannot-tell' : 'items-or-bytes';
  return { ...full, unit, emptyAdmitted };
}
