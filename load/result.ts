/** The content of load-SCENARIO.json, and the exit statuses. */
import { quote, type Failure } from '../engine/run/evidence/evidence.ts';
import { REQUIREMENTS } from '../engine/requirements.ts';
import { sum } from './estimate/numbers.ts';
import type { Found } from './estimate/figures.ts';
import type { Slo } from './estimate/step.ts';
import type { DepthFinding } from './estimate/depth.ts';
import type { LimiterFinding } from './estimate/limiter-fit.ts';
import type { Finding } from './k6/lib/judge.ts';
import type { Latency } from './k6/lib/summary.ts';

/** The upper end of the interval is null in JSON if the SLO held at every rate, or every request was rejected. */
export interface CapacityFigure extends Found {
  /** Number of clients: one, or all in the target file. */
  readonly clients: number;
  readonly slo: Slo;
  /** The figure with all clients, if one client alone reached its quota. */
  readonly perServer?: Omit<CapacityFigure, 'perServer'>;
}

type Certainty = 'interval' | 'confirmed' | 'unconfirmed' | 'prediction' | 'limitedBy' | 'quota';

/**
 * Number of polling tenants that the target carries, and the latencies at rates up to a quarter of the
 * carried one. The upper end of the interval is null in JSON if a quota of the measured clients was the limit, or the SLO
 * held at every rate.
 */
export interface TenantsCarried extends Pick<Found, Certainty> {
  readonly tenants: number;
  readonly pollMs: number;
  readonly pagesPerPoll: number;
  /** Polls per second with a growing queue, if there was one. */
  readonly saturatedAt?: number | undefined;
  readonly backfillPageMs?: { readonly p50: number; readonly mean: number } | undefined;
}

export interface TenantsFigure {
  readonly pollSeconds: number;
  readonly backfills: number;
  /** Number of clients that stand for the tenants. */
  readonly clients: number;
  readonly slo: Slo;
  readonly alone: TenantsCarried;
  /** While `backfills` tenants traverse all screenings. */
  readonly beside?: TenantsCarried | undefined;
}

export interface LoadResult {
  readonly scenario: string;
  readonly target: string;
  readonly startedAt: string;
  readonly durationMs: number;
  /** Why the result must not be interpreted; false if it may be. */
  readonly void: false | string;
  readonly conformant: boolean;
  readonly held: boolean;
  readonly findings: readonly LoadFinding[];
  readonly summary: readonly string[];
  readonly requests: number;
  readonly tokenCalls: number;
  readonly pageSize: number;
  readonly generator?: { readonly cpuShare?: number | undefined };
  readonly seconds?: number;
  readonly latency?: Latency;
  readonly thresholds?: Readonly<Record<string, boolean>>;
  readonly capacity?: CapacityFigure;
  readonly tenants?: TenantsFigure;
  readonly limiter?: LimiterFinding;
  readonly depth?: DepthFinding;
  /** Rows for plots, such as requests over time. */
  readonly tables?: Readonly<Record<string, readonly Readonly<Record<string, number | string>>[]>>;
}

/** The share of failed requests in a run of arrivals, whose figures over time count them. */
export function failedShare({ tables }: Pick<LoadResult, 'tables'>): number {
  const countOf = (name: string): number => sum((tables?.['time'] ?? []).map((row) => Number(row[name])));
  return countOf('failed') / Math.max(1, countOf('requests'));
}

export const EXIT = { held: 0, broken: 1, usage: 2, void: 3 } as const;

type Judged = Pick<LoadResult, 'void' | 'held' | 'conformant' | 'capacity' | 'tenants'>;

/** The verdict, and the status that determines its colour. */
export function verdictOf({ void: why, held, conformant, capacity, tenants }: Judged) {
  if (why !== false) return ['Void', 'untested'] as const;
  if (!conformant) return ['Non-conformant under load', 'fail'] as const;
  const figures = [capacity, capacity?.perServer, tenants?.alone, tenants?.beside];
  if (figures.some((one) => one?.confirmed === false)) return ['Undecided', 'untested'] as const;
  return held ? (['Held', 'pass'] as const) : (['Not held', 'fail'] as const);
}

export function verdictText(result: Judged): string {
  const [word, status] = verdictOf(result);
  if (result.void !== false) return `VOID: ${result.void}`;
  return status === 'pass' ? 'held' : word.toUpperCase();
}

/** 0 held · 1 SLO or conformance broken · 3 void, also for an unconfirmed figure. */
export const exitStatus = (result: Judged): number =>
  ({ pass: EXIT.held, fail: EXIT.broken, untested: EXIT.void })[verdictOf(result)[1]];

/** A requirement that answers under load violated; its failures are evidence, each message once with its count. */
type LoadFinding = ReturnType<typeof gatherFindings>[number];

/** Further messages of a requirement rarely say anything new. */
const MOST_MESSAGES = 5;

type LoadFailure = Pick<Failure, 'message' | 'request' | 'response' | 'curl'> & { count: number };

/** A finding of a single answer, or of several with one message. */
export type CountedFinding = Finding & { readonly count?: number };

/** Groups findings by requirement. */
export function gatherFindings(found: readonly CountedFinding[]) {
  const byId = new Map<string, Map<string, LoadFailure>>();
  for (const { id, message, request = '', response = '', count = 1 } of found) {
    const messages = byId.get(id) ?? new Map<string, LoadFailure>();
    const url = request.replace(/^GET /, '');
    const curl = url && `curl -sS -i --globoff -H "Authorization: Bearer $TOKEN" ${quote(url)}`;
    const known = messages.get(message) ?? { message, request, response, curl, count: 0 };
    known.count += count;
    byId.set(id, messages.set(message, known));
  }
  return [...byId].map(([id, messages]) => {
    const requirement = REQUIREMENTS.find((known) => known.id === id);
    if (!requirement) throw new Error(`the catalogue has no requirement ${id}`);
    const failures = [...messages.values()];
    const { section, level, title, lookAt } = requirement;
    const status = level === 'MUST' ? ('fail' as const) : ('warn' as const);
    /** Of all messages, also of those that are left out. */
    const count = sum(failures.map((one) => one.count));
    return { id, section, level, title, status, lookAt, count, failures: failures.slice(0, MOST_MESSAGES) };
  });
}

/** Only a broken MUST makes a target non-conformant. */
export const conformant = (findings: readonly LoadFinding[]): boolean =>
  findings.every(({ status }) => status !== 'fail');
