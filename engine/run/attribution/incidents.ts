/** Failures of the server that did not come again (section 7.2 foresees them: clients retry with exponential backoff). */
import { sayRefusal, serverFailed } from '../../checks/errors.ts';
import type { Incident, NewFinding } from '../state/ledger.ts';

/** So many are accidents; beyond, and in more than one request of so many, it is how the server is. */
const ACCIDENTS = 2;
const ONE_IN = 200;

/** What they are together: a warning, or a breach where they are no accident. Undefined where there are none. */
export function incidentsFinding(incidents: readonly Incident[], requests: number): NewFinding | undefined {
  const failures = incidents.filter(({ failed }) => serverFailed(failed) !== undefined);
  const first = failures[0]?.failed;
  if (!first) return undefined;
  const accidents = episodes(failures);
  const often = accidents > ACCIDENTS && accidents * ONE_IN > requests;
  const at = new Date(first.startedAtMs).toISOString();
  const more = failures.length > 1 ? `, and ${failures.length - 1} more like it in ${requests} requests` : '';
  return {
    id: '7.2-no-unprovoked-5xx',
    cause: 'served when tried again',
    mismatch: {
      expected: 'no 5xx and no broken connection',
      received: `${sayRefusal(first)} at ${at}${more}; served when tried again`,
    },
    exchange: first,
    warning: !often,
    confirmed: `${failures.length} in ${requests} requests`,
  };
}

/** What was under way while a server failed met the same failure: together they are one. */
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
