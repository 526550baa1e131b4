/** One certification, in this process: what the command line runs, and what every proof by a fault runs. */
import { commandLine } from '../engine/called-from.ts';
import { once, setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kit } from '../engine/run/kit.ts';
import { DEFAULTS, type KitOptions } from '../engine/run/options.ts';
import type { Finding } from '../engine/run/state/ledger.ts';
import { inOrder, type Check } from '../engine/run/check.ts';
import { mapConcurrently } from '../engine/run/concurrent.ts';
import { pagesOfEverySize } from '../engine/run/walk/standard-walks.ts';
import { preconditionsOf, runCheck } from '../engine/run/schedule/run-check.ts';
import {
  REQUIREMENTS,
  requirement,
  type RequirementClass,
  type RequirementId,
} from '../engine/requirements.ts';
import type { Target } from '../engine/target/target.ts';
import { PROPERTIES } from '../properties/all.ts';
import { SPECS } from '../specs/all.ts';
import { buildReport } from './build-report.ts';
import type { Report } from './report.ts';
import { beginningWith, oneAtATime, shareOf, concurrentLanes, stagesOf, type Lane } from './schedule.ts';

/** How far a run is. */
export interface Progress {
  readonly planned: number;
  readonly done: number;
  /** The check that begins now; undefined at the end. */
  readonly check?: Check | undefined;
  /** Findings that were confirmed since the last call. */
  readonly findings: readonly Finding[];
  /** How many requests have been sent by now: it moves within a check too. */
  readonly requests: () => number;
  /** How long a rate limit was waited for. */
  readonly waitedMs: () => number;
}

/** Concurrency limit of checks that do not disturb one another. */
export const CONCURRENCY = 4;
/** Concurrency limit of the requests of each check. */
const REQUESTS_EACH = 3;

export interface CertifyOptions extends Partial<Omit<KitOptions, 'concurrency'>> {
  /** Concurrency limit of checks; with 1 each request waits for the one before. Default 4. */
  readonly concurrency?: number | undefined;
  /** Requirement ids; all where absent. */
  readonly only?: readonly RequirementId[] | undefined;
  /** The knowledge to start with. */
  readonly first?: readonly string[] | undefined;
  /** Default: every test of specs and properties. */
  readonly checks?: readonly Check[];
  /** Classes that must have been exercised for a conformant verdict, in addition to core and what the target file requires. */
  readonly require?: readonly RequirementClass[];
  /** End the run at the first broken MUST. */
  readonly failFast?: boolean;
  /** The run is over then, and tells what it has. */
  readonly deadlineMs?: number;
  /** The command that repeats the run, as the report prints it. */
  readonly replay?: string;
  readonly onProgress?: (progress: Progress) => void;
}

/** The checks that exercise any of the selected requirements, in the order in which they run. */
const selectChecks = (
  checks: readonly Check[],
  only: readonly RequirementId[] | undefined,
): readonly Check[] =>
  inOrder(only ? checks.filter(({ ids }) => ids.some((id) => only.includes(id))) : checks);

/** The ids that a selection such as `4.2,5-missing` names: ids and whole sections. Empty where nothing matches. */
export function selectIds(words: readonly string[]): RequirementId[] {
  return REQUIREMENTS.filter(({ id, section }) =>
    words.some((word) => word === id || word === section || section.startsWith(`${word}.`)),
  ).map(({ id }) => id);
}

export function kitOptions({
  seed,
  runs,
  maxRequests = DEFAULTS.maxRequests,
  budget,
  timeoutMs,
  path,
  shrink,
  waitForExpiry,
  pollingScale,
  signal,
  onExchange,
  clock,
  dispatcher,
  concurrency = CONCURRENCY,
}: Omit<CertifyOptions, 'only'>): KitOptions {
  return {
    seed: seed ?? Math.floor(Math.random() * 2 ** 31),
    runs: runs ?? DEFAULTS.runs,
    maxRequests: Math.min(maxRequests, budget ?? Infinity),
    budget,
    timeoutMs: timeoutMs ?? DEFAULTS.timeoutMs,
    path,
    shrink,
    waitForExpiry,
    pollingScale,
    signal,
    onExchange,
    clock,
    dispatcher,
    concurrency: concurrency === 1 ? 1 : concurrency * REQUESTS_EACH,
  };
}

/** Generous: a strict rate limit is waited out. */
export const DEFAULT_DEADLINE_MS = 2 * 3_600_000;

/**
 * Certifies a target. Never rejects for anything that the target does; interrupted by its signal, or at its
 * deadline, it resolves to the report of what was done.
 */
export async function certify(target: Target, options: CertifyOptions = {}): Promise<Report> {
  using end = endOf(options);
  const { signal } = end;
  await using kit = new Kit(target, kitOptions({ ...options, signal }));
  const startedAt = new Date();
  const began = performance.now();
  const { budget } = options;
  const concurrency = budget === undefined ? (options.concurrency ?? CONCURRENCY) : 1;
  const selected = selectChecks(options.checks ?? [...SPECS, ...PROPERTIES], options.only);
  const checks = options.first ? beginningWith(options.first, selected) : selected;
  const requests = (): number => kit.client.requests;
  const tell = (done: number, findings: readonly Finding[], check?: Check): void =>
    options.onProgress?.({
      planned: checks.length,
      done,
      check,
      findings: findings.filter(({ id }) => options.only?.includes(id) ?? true),
      requests,
      waitedMs: () => kit.client.waitedMs,
    });
  const fresh: Finding[] = [];
  let done = 0;
  let stopped: string | undefined;
  const confirm = oneAtATime(async () => {
    const findings = await kit.confirmFindings();
    fresh.push(...findings);
    const broken =
      options.failFast &&
      findings.find(({ id }) => requirement(id).level === 'MUST' && (options.only?.includes(id) ?? true));
    if (broken) stopped ??= `--fail-fast ended the run at ${broken.id}`;
  });
  let waiting = 0;
  const run = async (check: Check): Promise<void> => {
    if (stopped || signal.aborted) return;
    tell(done, fresh.splice(0), check);
    if (budget !== undefined) kit.client.allowedUntil = requests() + shareOf(budget - requests(), waiting--);
    await soonEnded(runCheck(kit, check), signal);
    kit.client.allowedUntil = Infinity;
    await confirm();
    done = Math.min(checks.length, kit.ledger.outcomes.length);
  };
  const runLane = async (lane: Lane): Promise<void> => {
    for (const check of lane) await run(check);
  };
  // Preconditions of all checks are not charged to any check's budget.
  if (budget !== undefined) await soonEnded(foundation(kit), signal);
  for (const stage of stagesOf(checks, budget, ({ title }) => kit.ledger.isCutShort(title))) {
    const stageChecks = stage();
    waiting = stageChecks.length;
    for (const lanes of concurrentLanes(stageChecks)) await mapConcurrently(lanes, runLane, concurrency);
  }
  const executed = kit.ledger.outcomes.filter(({ state }) => state === 'done').length;
  if (signal.aborted) stopped = `${String(signal.reason)} after ${executed} of ${checks.length} checks`;
  const preconditions = await soonEnded(
    preconditionsOf(kit).catch(() => ({})),
    signal,
  );
  tell(checks.length, [...fresh, ...(await kit.conclude())]);
  return buildReport(kit, {
    startedAt,
    durationMs: performance.now() - began,
    planned: checks.length,
    selection: options.only,
    basis: preconditions ?? {},
    required: [...new Set([...(target.require ?? []), ...(options.require ?? [])])],
    replay: options.replay ?? commandLine('certify', `--seed ${kit.options.seed}`),
    interrupted: stopped ?? kit.client.gone,
  });
}

/** Preconditions that most checks share. */
async function foundation(kit: Kit): Promise<void> {
  const { data } = await preconditionsOf(kit);
  if (!data) await pagesOfEverySize(kit).catch(() => undefined);
}

/** Aborted by the signal, or at the deadline. */
function endOf({ signal, deadlineMs = DEFAULT_DEADLINE_MS }: CertifyOptions): Disposable & {
  readonly signal: AbortSignal;
} {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(`ended by --deadline ${deadlineMs / 1000}`), deadlineMs);
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  // Every request that is under way listens: that is no leak to warn of.
  setMaxListeners(0, either);
  return {
    signal: either,
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** How long a check may take to notice that the run is over: it may be healing what it broke. */
const GRACE_MS = 3_000;

/** When the run is interrupted, requests in flight get a short time to finish. */
async function soonEnded<T>(running: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const over = new AbortController();
  const aborted = signal.aborted ? Promise.resolve() : once(signal, 'abort', { signal: over.signal });
  const late = aborted.then(() => sleep(GRACE_MS, undefined, { signal: over.signal })).catch(() => undefined);
  try {
    return await Promise.race([running, late]);
  } finally {
    over.abort();
  }
}
