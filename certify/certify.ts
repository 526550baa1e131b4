/** Certifies a target in this process; used by the command line and by all tests with faults. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '../engine/clock.ts';
import { Kit } from '../engine/run/kit.ts';
import { DEFAULTS, randomSeed, type KitOptions } from '../engine/run/state/context.ts';
import { isViolation, type Finding } from '../engine/run/state/ledger.ts';
import { inOrder, type Check, runsEarly } from '../engine/run/check.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { pagesOfEverySize } from '../engine/run/walk/standard-walks.ts';
import { preconditionsOf, runCheck } from '../engine/run/schedule/run-check.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { Target } from '../engine/target/target.ts';
import { PROPERTIES } from '../properties/all.ts';
import { SPECS } from '../specs/all.ts';
import { buildReport } from './build-report.ts';
import type { Report } from './report/report.ts';

export interface Progress {
  readonly planned: number;
  readonly done: number;
  /** The check that starts now; undefined at the end. */
  readonly check?: Check | undefined;
  /** Findings confirmed since the last call. */
  readonly findings: readonly Finding[];
  /** The number of requests sent; increases within a check too. */
  readonly requests: () => number;
  /** How long the run has waited for rate limits, in milliseconds. */
  readonly waitedMs: () => number;
}

/** Concurrency limit of checks that do not disturb each other. */
export const CONCURRENCY = 4;
const REQUESTS_EACH = 3;

export interface CertifyOptions extends Partial<Omit<KitOptions, 'concurrency'>> {
  /** Concurrency limit of checks; 1 also sends requests one at a time. Default 4. */
  readonly concurrency?: number | undefined;
  readonly only?: readonly RequirementId[] | undefined;
  readonly first?: readonly string[] | undefined;
  /** Default: every test of specs and properties. */
  readonly checks?: readonly Check[];
  readonly failFast?: boolean;
  /** Ends the run after this time; it then reports what it has tested. */
  readonly deadlineMs?: number;
  readonly replay?: string;
  readonly onProgress?: (progress: Progress) => void;
}

/** The laws of pages run beside the walks, because the checks of tokens that come next run alone. */
const afterWalks = SPECS.findLastIndex(({ ids }) => ids.includes('9-prefix')) + 1;
const isOfTokens = ({ needs }: Check): boolean => needs === 'token';
const ALL_CHECKS: readonly Check[] = [
  ...SPECS.slice(0, afterWalks),
  ...PROPERTIES.filter((law) => !isOfTokens(law)),
  ...SPECS.slice(afterWalks),
  ...PROPERTIES.filter(isOfTokens),
];

export const kitOptions = ({
  seed = randomSeed(),
  runs = DEFAULTS.runs,
  maxRequests = DEFAULTS.maxRequests,
  timeoutMs = DEFAULTS.timeoutMs,
  concurrency = CONCURRENCY,
  ...others
}: CertifyOptions): KitOptions => ({
  ...others,
  ...{ seed, runs, timeoutMs },
  maxRequests: Math.min(maxRequests, others.budget ?? Infinity),
  concurrency: concurrency === 1 ? 1 : concurrency * REQUESTS_EACH,
});

/** Long enough to wait for a strict rate limit repeatedly. */
export const DEFAULT_DEADLINE_MS = 2 * 3_600_000;

/** Never rejects because of the target; if interrupted by its signal or the deadline, it reports what was tested so far. */
export async function certify(target: Target, options: CertifyOptions = {}): Promise<Report> {
  using end = endOf(options);
  const { signal } = end;
  await using kit = new Kit(target, kitOptions({ ...options, signal }));
  const startedAt = new Date();
  const began = performance.now();
  const { budget } = options;
  const concurrency = budget === undefined ? (options.concurrency ?? CONCURRENCY) : 1;
  const isSelected = (id: RequirementId): boolean => options.only?.includes(id) ?? true;
  const selected = inOrder((options.checks ?? ALL_CHECKS).filter(({ ids }) => ids.some(isSelected)));
  const checks = options.first ? beginningWith(options.first, selected) : selected;
  const requests = (): number => kit.client.requests;
  const tell = (done: number, findings: readonly Finding[], check?: Check): void =>
    options.onProgress?.({
      planned: checks.length,
      done,
      check,
      findings: findings.filter(({ id }) => isSelected(id)),
      requests,
      waitedMs: () => kit.client.health.waitedMs,
    });
  const fresh: Finding[] = [];
  let done = 0;
  let stopped: string | undefined;
  let confirmed = Promise.resolve();
  const confirm = async (): Promise<void> => {
    const findings = await kit.confirmFindings();
    fresh.push(...findings);
    const broken =
      options.failFast && findings.find((finding) => isViolation(finding) && isSelected(finding.id));
    if (broken) stopped ??= `--fail-fast ended the run at ${broken.id}`;
  };
  let waiting = 0;
  const run = async (check: Check): Promise<void> => {
    if (stopped || signal.aborted) return;
    tell(done, fresh.splice(0), check);
    if (budget !== undefined) kit.client.allowedUntil = requests() + shareOf(budget - requests(), waiting--);
    await untilAborted(runCheck(kit, check), signal);
    kit.client.allowedUntil = Infinity;
    // One at a time.
    await (confirmed = confirmed.then(confirm));
    done = Math.min(checks.length, kit.ledger.outcomes.length);
  };
  const runLane = async (lane: Lane): Promise<void> => {
    for (const check of lane) await run(check);
  };
  // Preconditions are not charged to the budget of any check.
  if (budget !== undefined) await untilAborted(fetchPreconditions(kit), signal);
  for (const stage of stagesOf(checks, budget, ({ title }) => kit.ledger.isCutShort(title))) {
    const stageChecks = stage();
    waiting = stageChecks.length;
    for (const lanes of concurrentLanes(stageChecks)) await mapConcurrently(lanes, runLane, concurrency);
  }
  const executed = kit.ledger.outcomes.filter(({ state }) => state === 'done').length;
  if (signal.aborted) stopped = `${String(signal.reason)} after ${executed} of ${checks.length} checks`;
  const preconditions = preconditionsOf(kit).then(
    ({ data }) => data,
    () => undefined,
  );
  const lacking = await untilAborted(preconditions, signal);
  tell(checks.length, [...fresh, ...(await kit.conclude())]);
  return buildReport(kit, {
    startedAt,
    durationMs: performance.now() - began,
    planned: checks.length,
    selection: options.only,
    lacking,
    interrupted: stopped ?? kit.client.health.gone,
    replay: options.replay,
  });
}

async function fetchPreconditions(kit: Kit): Promise<void> {
  const { data } = await preconditionsOf(kit);
  if (!data) await pagesOfEverySize(kit).catch(() => undefined);
}

function endOf({ signal, deadlineMs = DEFAULT_DEADLINE_MS }: CertifyOptions): Disposable & {
  readonly signal: AbortSignal;
} {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(`ended by --deadline ${deadlineMs / 1000}`), deadlineMs);
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  // Every request in flight adds a listener; this is not a leak.
  setMaxListeners(0, either);
  return { signal: either, [Symbol.dispose]: () => clearTimeout(timer) };
}

/** How long a check may take to notice the abort: it may be cleaning up. */
const GRACE_MS = 3_000;

/** Waits for a task; after an abort only for a short time, then returns undefined. */
const untilAborted = <T>(running: Promise<T>, signal: AbortSignal): Promise<T | undefined> =>
  unlessAborted(signal, running).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return Promise.race([running, sleep(GRACE_MS, undefined)]);
  });

// -- the order of checks, which of them run concurrently, and their shares of a small budget -------

/** A stage of the run; its checks are determined when it starts. */
type Stage = () => readonly Check[];

/** With a budget three: checks of the requirements, those again whose share was too small, and then all others. */
function stagesOf(
  checks: readonly Check[],
  budget: number | undefined,
  isCutShort: (check: Check) => boolean,
): Stage[] {
  if (budget === undefined) return [() => checks];
  const required = checks.filter(({ isSupplement }) => !isSupplement);
  return [
    () => required,
    () => required.filter(isCutShort),
    () => checks.filter(({ isSupplement }) => isSupplement),
  ];
}

/** Puts the checks of these requirements first, except those that would disturb others. */
export function beginningWith(ids: readonly string[], checks: readonly Check[]): readonly Check[] {
  const isFirst = (check: Check): boolean => runsEarly(check) && check.ids.some((id) => ids.includes(id));
  return [...checks.filter(isFirst), ...checks.filter((check) => !isFirst(check))];
}

const LEAST_SHARE = 2;
/** The remainder is reserved for confirmations. */
const SPENDABLE = 0.9;

/** The number of requests that a check may send: twice an equal share of what is left, since many checks need few. */
const shareOf = (left: number, waiting: number): number =>
  Math.max(LEAST_SHARE, Math.floor((SPENDABLE * 2 * left) / waiting));

type Lane = readonly Check[];

/** Groups of concurrent lanes: checks that only read; those that write to the scratch tenant share the first: it is long. */
export function concurrentLanes(checks: readonly Check[]): Lane[][] {
  const isShared = ({ access }: Check): boolean => ['reads', 'reads late', 'scratch'].includes(access);
  const groups: Check[][] = [];
  for (const check of checks) {
    const before = groups.at(-1);
    if (isShared(check) && before?.[0] && isShared(before[0])) before.push(check);
    else groups.push([check]);
  }
  return groups.map((group) => {
    const scratch = group.filter(({ access }) => access === 'scratch');
    const others = group.filter((check) => !scratch.includes(check)).map((check) => [check]);
    return scratch.length > 0 ? [scratch, ...others] : others;
  });
}
