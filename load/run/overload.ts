/** Detects generator overload, which makes a result void, and finds the number of virtual users (connections). */
import { ascending, largest, quantile, sum } from '../estimate/numbers.ts';
import { failed, LATE_SHARE, type Slo, warmUpMs } from '../estimate/step.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import type { K6Run } from './k6-run.ts';
import type { Pressure } from './machine.ts';

interface Overload {
  readonly reason: string;
  /** `passing`: the machine was busy for a while; `vus`: too few virtual users; `none`: a retry does not help. */
  readonly remedy: 'passing' | 'vus' | 'none';
}

export const OVERLOAD = {
  /** A free VU that starts later than this was delayed by the generator; the target's queue then lasts a multiple. */
  schedulerLagMs: 80,
  stallEcho: 3,
  /** Share of the machine's processors that k6 may use, and that may be in use before the load. */
  cpuShare: 0.85,
  busyAtRest: 0.6,
  /** Shares of the time from which on a small violation of the SLO is not evidence. */
  stolen: 0.05,
  throttled: 0.05,
  waiting: 0.6,
  /** A few answers this much later than the SLO are the target's fault even on a busy machine. */
  frozenMs: 2000,
};
const PRESSURE = {
  stolen: 'the hypervisor withheld the processors',
  throttled: "the container's processor quota was used up",
  waiting: 'tasks on this machine waited for a processor',
};
/** With a smaller share of the pages in its records, k6's output is incomplete. */
const RECORDED_SHARE = 0.98;
/** k6's error code of a request without an answer in time. */
const TIMEOUT = 1050;
/** Whether it is k6's error code for a failed or reset connection. */
export const isRefused = (errorCode = 0): boolean =>
  errorCode === 1000 || (errorCode >= 1200 && errorCode < 1300);

/** Returns the reason for a void result, or undefined. */
export function overloadOf(
  run: Partial<K6Run> & Pick<K6Run, 'oneIn'>,
  samples: readonly ArrivalRecord[],
  slo: Slo,
  { waiting, busy }: Pressure,
): Overload | undefined {
  const none = (reason: string): Overload => ({ reason, remedy: 'none' });
  const passing = (reason: string): Overload => ({ reason, remedy: 'passing' });
  const made = (run.summary?.counts['pages'] ?? 0) / run.oneIn;
  if (samples.length === 0) return none('no request was sent: raise --rate or --duration');
  const written =
    sum(samples.map(({ pages = 1 }) => pages)) +
    (run.records ?? []).filter(({ kind }) => kind === 'page').length;
  if (written < made * RECORDED_SHARE) return none(`the generator lost ${made - written} of ${made} records`);
  if (run.cpuShare !== undefined && run.cpuShare > OVERLOAD.cpuShare) {
    return passing(`the generator used ${(run.cpuShare * 100).toFixed(0)} % of this machine's processors`);
  }
  const answered = samples.filter((one) => !failed(one.status));
  const latencies = ascending(answered.map((one) => one.latencyMs));
  const latency = quantile(latencies, 0.99);
  // A stall of the machine delays the target too, and its queue lasts several times as long: a small violation of the
  // SLO is not evidence. A large violation, or half of the answers late, is.
  const startMs = warmUpMs(largest(samples.map(({ dueMs }) => dueMs)) / 1000);
  const stallMs = largest(samples.map((one) => (one.dueMs < startMs ? 0 : one.schedulerLagMs)));
  const lagP99Ms = quantile(ascending(samples.map((one) => one.schedulerLagMs)), 0.99);
  const brokeByLittle = latency >= slo.p99Ms && quantile(latencies, 0.5) < slo.p99Ms;
  const echo = brokeByLittle && latency < slo.p99Ms + OVERLOAD.stallEcho * stallMs;
  if ((stallMs > OVERLOAD.schedulerLagMs && echo) || lagP99Ms > slo.p99Ms / 2) {
    const lateMs = Math.max(stallMs, lagP99Ms);
    return passing(`free VUs started up to ${lateMs.toFixed(0)} ms late: generator overload`);
  }
  const service = quantile(ascending(answered.map((one) => one.serviceMs)), 0.9);
  // Little's law: requests waited for VUs although the target answered in time, so there were too few VUs. A
  // saturated target would occupy every VU for longer than the SLO.
  const waited = quantile(ascending(answered.map((one) => one.latencyMs - one.serviceMs)), 0.99);
  if (latency >= slo.p99Ms && waited >= slo.p99Ms / 2 && service < slo.p99Ms) {
    const inTime = `the target answered within ${service.toFixed(0)} ms (p90)`;
    const reason = `requests waited up to ${waited.toFixed(0)} ms for a free VU while ${inTime}`;
    return { reason, remedy: 'vus' };
  }
  // A machine that is busy before the load is busy during it, and VUs lack processor time. But if free VUs start in
  // time, a few answers that take seconds longer are the target's fault.
  const frozenMs = slo.p99Ms + OVERLOAD.frozenMs + OVERLOAD.stallEcho * stallMs;
  const timeouts = samples.filter((one) => one.errorCode === TIMEOUT && one.serviceMs > frozenMs).length;
  const froze = (brokeByLittle && latency > frozenMs) || timeouts > LATE_SHARE * samples.length;
  const dropped = (run.summary?.counts['dropped_iterations'] ?? 0) / run.oneIn;
  const broke = latency >= slo.p99Ms || dropped > slo.errorRate * samples.length;
  if (broke && !froze && (waiting > OVERLOAD.busyAtRest || busy > OVERLOAD.busyAtRest)) {
    const share = (Math.max(waiting, busy) * 100).toFixed(0);
    return passing(`this machine was ${share} % busy with other work before the run`);
  }
  if (!brokeByLittle || froze || quantile(latencies, 0.8) >= slo.p99Ms) return undefined;
  const shareOf = (kind: keyof Pressure): number => run.pressure?.[kind] ?? 0;
  const kinds = Object.keys(PRESSURE) as (keyof typeof PRESSURE)[];
  const kind = kinds.find((each) => shareOf(each) > OVERLOAD[each]);
  return kind && passing(`${PRESSURE[kind]} ${(shareOf(kind) * 100).toFixed(0)} % of the time`);
}

/** The search stops at this ratio between refused and accepted connections. */
const PRECISION = 1.15;

/**
 * The numbers of connections that the target accepted and refused; each next number is closer to the limit. Since a
 * restart refuses connections too, a limit must show twice, and is dropped if as many are accepted later.
 */
export class Connections {
  accepted = 1;
  refused = Infinity;
  #suspected = Infinity;

  /** The highest number of VUs; leaves room for k6's setup, which has its own connection, and for the precision. */
  get most(): number {
    return Math.max(1, Math.min(Math.ceil(this.refused / PRECISION), this.refused - 1) - 1);
  }

  /** Connections of this many VUs were refused: returns the next number; undefined if as many worked before. */
  refuse(vus: number): number | undefined {
    if (vus <= this.accepted) return undefined;
    if (this.refused === Infinity && this.#suspected === Infinity) {
      this.#suspected = vus;
      return vus;
    }
    this.refused = Math.min(this.refused, vus + 1);
    return Math.max(1, Math.floor(Math.sqrt(this.accepted * vus)));
  }

  accept(vus: number): void {
    this.accepted = Math.max(this.accepted, vus);
    if (vus + 1 >= this.refused || vus >= this.#suspected) this.#suspected = Infinity;
    if (vus + 1 >= this.refused) this.refused = Infinity;
  }

  /** Requests waited with this many VUs: returns the next number; `all` if the target accepts no more. */
  more(vus: number, needed: number): number | 'all' {
    if (vus >= this.most) return 'all';
    // The geometric mean of the current and the refused number.
    const between = Math.floor(Math.sqrt(vus * this.refused));
    return Math.min(needed, this.most, Math.max(vus + 1, between));
  }
}
