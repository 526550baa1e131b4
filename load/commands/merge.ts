/** `npm run load -- merge FILES`: merges the results of parallel runners. */
import { readFile, writeFile } from 'node:fs/promises';
import { UsageError } from '../../engine/errors.ts';
import { prepareFile } from '../../engine/files.ts';
import { largest, percent, sum } from '../estimate/numbers.ts';
import { meetsSlo } from '../estimate/step.ts';
import { ABORTED_BEYOND } from '../k6/lib/presets.ts';
import { parseJson, readRecord } from '../k6/lib/record.ts';
import type { ScenarioSummary, SharedPart } from '../k6/lib/summary.ts';
import { brokenThresholds } from '../scenarios/format.ts';
import { conformant, exitStatus, failedShare, gatherFindings, verdictText } from '../result.ts';
import type { CountedFinding, LoadResult } from '../result.ts';

/** The summary of a runner, or a result, which also has a verdict and may be void. */
type Part = Omit<ScenarioSummary, 'thresholds'> & Partial<Pick<LoadResult, 'thresholds' | 'void' | 'held'>>;

/** Reads a result file, a summary file, or a runner's log that contains the summary. Throws UsageError. */
async function readPart(file: string): Promise<Part & { findings: readonly CountedFinding[] }> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new UsageError(`${file}: cannot be read`);
  });
  const lines = text.split('\n');
  for (const candidate of [text, ...lines.toReversed()]) {
    const parsed: Partial<Part & LoadResult> = parseJson(candidate) ?? {};
    const { requests = 0, tokenCalls = 0, durationMs = 0, findings: known = [], latency } = parsed;
    if (!latency && !parsed.counts && !parsed.void) continue;
    const findings: CountedFinding[] = lines
      .flatMap((line) => readRecord(line) ?? [])
      .filter((record) => record.kind === 'finding');
    for (const { id, failures } of known) findings.push(...failures.map((failure) => ({ ...failure, id })));
    const errors = (latency?.requests ?? 0) * failedShare(parsed);
    const counts = { pages: requests, token_calls: tokenCalls, errors };
    return { seconds: durationMs / 1000, counts, ...parsed, findings };
  }
  throw new UsageError(`${file}: contains no latency of a load run`);
}

/** Prints the merged result; exit status as for a scenario. Throws a UsageError for mixed or duplicate parts. */
export async function mergeCommand(files: readonly string[], output?: string): Promise<number> {
  const parts = await Promise.all(files.map(readPart));
  if (output) await prepareFile(output, '--output');
  const merged = mergeParts(parts);
  const findings = gatherFindings(parts.flatMap((part) => part.findings));
  // Findings that were counted but not printed count as well.
  const correct = conformant(findings) && (findings.length > 0 || !merged.counts['findings']);
  const { requests, seconds, requestsPerSecond, p50Ms, p99Ms, errorRate } = merged;
  const judged = { void: merged.void ?? false, conformant: correct, held: merged.held };
  if (output)
    await writeFile(output, `${JSON.stringify({ ...merged, conformant: correct, findings }, null, 2)}\n`);
  console.log(
    `${merged.parts} parts: ${requests} requests in ${seconds.toFixed(1)} s, ${requestsPerSecond.toFixed(1)}/s, p50 ≤ ${p50Ms.toFixed(1)} ms, p99 ≤ ${p99Ms.toFixed(1)} ms, ${percent(errorRate, 2)} failed`,
  );
  for (const { id, failures } of findings) console.log(`  ${id}: ${failures[0]?.message ?? ''}`);
  for (const broken of merged.broken) console.log(`  ${broken}`);
  console.log(verdictText(judged));
  return exitStatus(judged);
}

/** Merges parts that ran concurrently. Throws a UsageError for parts of different runs or with the same segment. */
export function mergeParts(parts: readonly Part[]) {
  const names = parts.flatMap(({ counts }) => Object.keys(counts));
  const countOf = (name: string): number => sum(parts.map(({ counts }) => counts[name] ?? 0));
  const counts: Part['counts'] = Object.fromEntries(names.map((name) => [name, countOf(name)]));
  const latencies = parts.flatMap(({ latency }) => latency ?? []);
  const most = (of: (one: (typeof latencies)[number]) => number): number => largest(latencies.map(of), 0);
  const shared = runOf(parts);
  // The planned duration of a shared run excludes setup and the last answers.
  const seconds = shared?.seconds ?? largest(parts.map((part) => part.seconds));
  const requests = sum(latencies.map((one) => one.requests));
  // Requests that were due but never sent count as failed.
  const due = Math.max(requests, shared?.due ?? 0);
  const failures = countOf('errors') + countOf('limited') + due - requests;
  const keepsSlo = shared
    ? due > 0 && meetsSlo(countOf('late') + failures, failures, due, shared)
    : parts.every((part) => part.held !== false);
  const broken = parts.flatMap(({ thresholds }) => brokenThresholds(thresholds));
  return {
    parts: parts.length,
    seconds,
    counts,
    requests,
    requestsPerSecond: seconds > 0 ? requests / seconds : 0,
    /** The highest quantiles of a part: those of all requests are not higher. */
    p50Ms: most(({ p50Ms }) => p50Ms),
    p99Ms: most(({ p99Ms }) => p99Ms),
    errorRate: due === 0 ? 1 : failures / due,
    broken: [...new Set(broken)],
    /** Whether the SLO of the shared run held, or without one that of every part; and the thresholds of every part. */
    held: keepsSlo && broken.length === 0,
    void: parts.find((part) => part.void)?.void ?? (shared && voidReason(parts, shared, counts)),
  };
}

function runOf(parts: readonly Part[]): SharedPart | undefined {
  const shared = parts.flatMap((part) => part.shared ?? []);
  if (shared.length === 0) return undefined;
  if (shared.length < parts.length || new Set(shared.map(({ runId }) => runId)).size > 1)
    throw new UsageError('the parts are not of one run');
  const segments = shared.map(({ segment }) => segment);
  const duplicate = segments.find((segment, index) => segments.indexOf(segment) < index);
  if (duplicate) throw new UsageError(`segment ${duplicate} is there twice`);
  return shared[0];
}

/** Tolerated scheduler lag of a runner, as a share of the SLO's p99. */
const MAX_LAG = 0.5;
/** Tolerated share of due requests that were never started. */
const SHORTFALL = 0.01;

function voidReason(parts: readonly Part[], of: SharedPart, counts: Part['counts']): string | undefined {
  const { parts: count, due = 0, p99Ms } = of;
  if (parts.length < count) return `${parts.length} of ${count} parts are there`;
  const lag = largest(parts.map((part) => part.schedulerLagP99Ms ?? 0));
  if (lag > p99Ms * MAX_LAG)
    return `generator overload: a runner started requests up to ${lag.toFixed(0)} ms late (p99)`;
  // An aborted run has not started all requests because of the target.
  if (parts.some(({ thresholds }) => thresholds?.[`http_req_failed ${ABORTED_BEYOND}`] === false))
    return undefined;
  const short = due - (counts['iterations'] ?? due) - (counts['dropped_iterations'] ?? 0);
  return short > SHORTFALL * due
    ? `generator overload: ${short} of ${due} requests were never started`
    : undefined;
}
