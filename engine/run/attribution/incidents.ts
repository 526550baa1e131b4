/** Failures of the server that did not come again (section 7.2 foresees them: clients retry with exponential backoff). */
import { sayRefusal, serverFailed } from '../../checks/errors.ts';
import type { Incident, NewFinding } from '../state/ledger.ts';

/** Episodes that are accidents: a deployment, a restart. More of them, and in more than one request of 200, are not. */
const ACCIDENTS = 2;
const ONE_IN = 200;

/** Their joint result: a warning, or a failure where they are no accident. Undefined where there are none. */
export function incidentsFinding(incidents: readonly Incident[], requests: number): NewFinding | undefined {
  const failures = incidents.filter(({ failed }) => serverFailed(failed) !== undefined);
  const first = failures[0]?.failed;
  if (!first) return undefined;
  // 503 beyond the target's concurrency is what section 7.2 foresees.
  const alone = failures.filter(({ failed, inFlight }) => failed.status !== 503 || inFlight === 1);
  const count = episodes(alone);
  const often = count > ACCIDENTS && count * ONE_IN > requests;
  const at = new Date(first.startedAtMs).toISOString();
  const more = failures.length > 1 ? `, and ${failures.length - 1} more like it in ${requests} requests` : '';
  return {
    id: '7.2-no-unprovoked-5xx',
    cause: 'served when tried again',
    mismatch: {
      expected: 'no 5xx and no broken connection',
      received: `${sayRefusal(first)} at ${at}${more}; served when tried again${likelyCause(failures, alone, often)}`,
    },
    exchange: first,
    warning: !often,
    confirmed: `${failures.length} in ${requests} requests`,
  };
}

/** A possible cause outside the implementation, and what would decide. */
function likelyCause(failures: readonly Incident[], alone: readonly Incident[], often: boolean): string {
  const statuses = new Set(failures.map(({ failed }) => failed.status));
  if (alone.length === 0) {
    const least = Math.min(...failures.map(({ inFlight }) => inFlight));
    return ` alone: it came only while ${least} or more requests were in flight, so the target takes fewer concurrently`;
  }
  if (often && statuses.has(503))
    return '. A rate limiter answers 429 with Retry-After (limit_req of nginx answers 503 unless limit_req_status is 429); its log tells whether it was one, one instance of several that fails, or a deployment';
  return often
    ? '. One instance of several that fails looks like this, and so does a deployment: the log of these moments decides'
    : '. A restart or deployment of an instance looks like this: the log of that moment decides';
}

/** Requests in flight during one failure of the server count as one failure. */
function episodes(incidents: readonly Incident[]): number {
  const ordered = [...incidents].sort((a, b) => a.failed.startedAtMs - b.failed.startedAtMs);
  let count = 0;
  let until = -Infinity;
  for (const { failed, servedAtMs } of ordered) {
    if (failed.startedAtMs > until) count++;
    until = Math.max(until, servedAtMs);
  }
  return count;
}
