/**
 * What belongs to the environment rather than to a request: server failures that did not recur (section 7.2 expects
 * them: clients retry with exponential backoff), and notes on the path to the target.
 */
import { sayRefusal, serverFailed } from '../../checks/errors.ts';
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import { isWithoutBody } from '../../client/failures.ts';
import { differs } from '../../checks/mismatch.ts';
import type { Incident, NewFinding } from '../state/ledger.ts';
import type { TargetClock } from '../../client/target-clock.ts';
import type { Target } from '../../target/target.ts';
import { unlessUntested } from '../../errors.ts';

/** Up to this many accidents, such as a restart, are tolerated; more are a failure above one failed request in 200. */
const ACCIDENTS = 2;
const ONE_IN = 200;
/** The longest accident, in time and as a share of the requests of the run; longer ones count as several. */
const ACCIDENT_MS = 10_000;
const ACCIDENT_SHARE = 0.1;

/** One finding for all incidents: a warning, or a failure if there are too many. Undefined if there are none. */
export async function incidentsFinding(
  incidents: readonly Incident[],
  requests: number,
  send: Send,
): Promise<NewFinding | undefined> {
  const failures = incidents.filter(({ failed }) => serverFailed(failed) !== undefined || lacksPage(failed));
  const first = failures[0]?.failed;
  if (!first) return undefined;
  const unexplained = failures.filter(({ isByGuard }) => !isByGuard);
  // Section 7.2 expects 503 above the target's concurrency limit; no status is specified above a limit of the token
  // endpoint, and limit_req of nginx answers 503.
  const alone = unexplained.filter(
    ({ failed: { status, request }, inFlight }) =>
      status !== 503 || (inFlight === 1 && request.channel !== 'token'),
  );
  const isTooOften = accidents(alone, requests) > ACCIDENTS && episodes(alone) * ONE_IN > requests;
  // 502, 504 and closed connections may come from a gateway in front of a busy target.
  const crowded = alone.find(({ failed, inFlight }) => failed.status === 500 && inFlight > 1);
  // A run that has ended sends nothing more: then the failure did not recur.
  const isOverload = crowded !== undefined && (await unlessUntested(recursInVolleys(crowded, send))) === true;
  if (isOverload) return overloadFinding(crowded);
  const at = new Date(first.startedAtMs).toISOString();
  const more = failures.length > 1 ? `, and ${failures.length - 1} more like it in ${requests} requests` : '';
  return {
    id: '7.2-no-unprovoked-5xx',
    cause: 'served when tried again',
    mismatch: {
      expected: 'no 5xx and no broken connection',
      received: `${lacksPage(first) ? '200 without a body' : sayRefusal(first)} at ${at}${more}; served when tried again${likelyCause(unexplained, alone, isTooOften)}`,
    },
    exchange: first,
    warning: !isTooOften,
    confirmed: `${failures.length} in ${requests} requests`,
  };
}

/** Maximum number of series of broken copies that a restart or a ban explains, as it begins and ends once. */
const BROKEN_SERIES = 2;

/** A finding if the server breaks new connections now and then: kept ones may break, which a retry hides. */
export function brokenConnectionsFinding(copies: readonly Exchange[]): NewFinding | undefined {
  const isBroken = (copy?: Exchange): boolean => copy?.transportError?.kind === 'reset';
  const broken = copies.filter(isBroken);
  const series = copies.filter((copy, index) => isBroken(copy) && !isBroken(copies[index - 1]));
  if (series.length <= BROKEN_SERIES) return undefined;
  return {
    id: '7.2-no-unprovoked-5xx',
    cause: 'new connections break',
    mismatch: differs(
      'no broken connection',
      `${broken.length} of ${copies.length} requests over new connections broken before any answer (${broken[0]!.transportError!.message}). One instance of several that fails looks like this`,
    ),
    exchange: broken[0],
    confirmed: `${broken.length} of ${copies.length}`,
  };
}

type Send = (request: RequestOut) => Promise<Exchange>;

/** How often as many concurrent requests must fail again: no accident explains that. */
const VOLLEYS = 2;

/** Sends copies of the request, as many as were in flight when it failed. */
async function recursInVolleys({ failed, inFlight }: Incident, send: Send): Promise<boolean> {
  for (let volley = 0; volley < VOLLEYS; volley++) {
    const answers = await Promise.all(Array.from({ length: inFlight }, () => send(failed.request)));
    if (!answers.some(({ status }) => status === 500)) return false;
  }
  // A single request is still served.
  return !serverFailed(await send(failed.request));
}

const overloadFinding = ({ failed, inFlight }: Incident): NewFinding => ({
  id: '7.2-no-unprovoked-5xx',
  cause: 'served when tried again',
  mismatch: differs(
    'no 500',
    `${sayRefusal(failed)} with ${inFlight} requests in flight, each time, and 200 for one alone`,
  ),
  exchange: failed,
});

/** A possible cause outside the implementation, and how to decide. `failures`: those that no guard explains. */
function likelyCause(failures: readonly Incident[], alone: readonly Incident[], often: boolean): string {
  if (failures.length === 0)
    return '. A guard that closes connections after many rejected requests looks like this: exempt the address of the kit for the run';
  const statuses = new Set(failures.map(({ failed }) => failed.status));
  const least = Math.min(...failures.map(({ inFlight }) => inFlight));
  if (alone.length === 0 && least > 1)
    return ` alone: it failed only with ${least} or more requests in flight: the concurrency limit of the target is lower, or it was restarted`;
  if ((often || alone.length === 0) && statuses.has(503))
    return '. A rate limiter answers 429 with Retry-After (limit_req of nginx answers 503 unless limit_req_status is 429); its log shows whether the cause was a rate limiter, one failing instance of several, or a deployment';
  return often
    ? '. One instance of several that fails looks like this, and so does a deployment: the log of these moments decides'
    : '. A restart or deployment of an instance looks like this: the log of that moment decides';
}

const inOrder = (incidents: readonly Incident[]): readonly Incident[] =>
  [...incidents].sort((a, b) => a.failed.startedAtMs - b.failed.startedAtMs);

/** Counts failures close together as one accident: one of two instances may fail for some seconds. */
function accidents(incidents: readonly Incident[], requests: number): number {
  let count = 0;
  let first: Incident['failed'] | undefined;
  for (const { failed } of inOrder(incidents)) {
    const isOther =
      !first ||
      failed.startedAtMs - first.startedAtMs > ACCIDENT_MS ||
      failed.seq - first.seq > ACCIDENT_SHARE * requests;
    if (!isOther) continue;
    first = failed;
    count++;
  }
  return count;
}

/** Counts failures of overlapping requests as one. */
function episodes(incidents: readonly Incident[]): number {
  let count = 0;
  let until = -Infinity;
  for (const { failed, servedAtMs } of inOrder(incidents)) {
    if (failed.startedAtMs > until) count++;
    until = Math.max(until, servedAtMs);
  }
  return count;
}

/** A page without an octet. Its request has no body that a proxy had yet to read, so no proxy is known to lose it. */
const lacksPage = (exchange: Exchange): boolean =>
  exchange.status === 200 && exchange.request.channel === 'rest' && isWithoutBody(exchange);

/** A note on answers whose body a proxy lost, of which the run saw no more when it sent the request again. */
export function lostBodiesNotes(incidents: readonly Incident[]): string[] {
  const lost = incidents.filter(({ failed }) => isWithoutBody(failed) && !lacksPage(failed));
  return lost.length === 0
    ? []
    : [
        `${lost.length} ${lost.length === 1 ? 'answer' : 'answers'} announced JSON and ended without it, unlike when requested again: a proxy lost the body (the log of Caddy says "aborting with incomplete response")`,
      ];
}

const SKEW_WORTH_TELLING_MS = 30_000;

export function environmentNotes(
  { baseUrl, authUrl }: Pick<Target, 'baseUrl' | 'authUrl'>,
  { skewMs = 0, wrongDateMs }: Pick<TargetClock, 'skewMs' | 'wrongDateMs'>,
): string[] {
  const origins = [...new Set([baseUrl, authUrl].map((url) => new URL(url).origin))];
  const open = origins
    .filter(isOpen)
    .map(
      (origin) => `${origin} is used without TLS: tokens and secrets can be read in transit (RFC 6750, 5.3)`,
    );
  const side = skewMs > 0 ? 'behind' : 'ahead of';
  const skewed =
    Math.abs(skewMs) > SKEW_WORTH_TELLING_MS
      ? [
          `the clock of this machine is ${Math.round(Math.abs(skewMs) / 1000)} s ${side} the target's, which decides`,
        ]
      : [];
  const dated =
    wrongDateMs === undefined
      ? []
      : [
          `Date is ${Math.round(wrongDateMs / 1000)} s off, but exp less expires_in of tokens agrees with the clock of this machine, which is used instead: check in the log of the service whether it or a proxy sets Date`,
        ];
  return [...open, ...skewed, ...dated];
}

/** Plain http to another machine. */
function isOpen(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'http:' && !/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
