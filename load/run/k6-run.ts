/** Runs one k6 script in a child process and reads its output: requests, findings, the summary. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../engine/files.ts';
import { spawnGuarded } from '../../engine/process.ts';
import { failed } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { isOfPages } from '../k6/lib/presets.ts';
import { parseJson, readRecord } from '../k6/lib/record.ts';
import type { ArrivalRecord, LoadRecord, SampleRecord } from '../k6/lib/record.ts';
import type { ScenarioSummary } from '../k6/lib/summary.ts';
import { cpuSeconds, residentMegabytes, measurePressure } from './machine.ts';
import { durationText, number } from '../../certify/render/results.ts';

export type K6Run = Readonly<Awaited<ReturnType<typeof runK6>>>;

interface K6Options {
  readonly k6: string;
  readonly config: LoadConfig;
  readonly env: Readonly<Record<string, string>>;
  readonly outputs?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Certificates in PEM to trust in addition to the system's. */
  readonly ca?: string | undefined;
  readonly judge?: ((sample: SampleRecord) => readonly Finding[]) | undefined;
  /** Takes each answer; returns true if the run is hopeless. */
  readonly progress?: ReturnType<typeof trackProgress> | undefined;
}

/** Prevents k6 from contacting other hosts than the target. */
export const K6_OFFLINE = {
  K6_NO_USAGE_REPORT: 'true',
  K6_AUTO_EXTENSION_RESOLUTION: 'false',
  K6_NO_COLOR: 'true',
} as const;

/** Path of a script, or of the script of a scenario. */
export const scriptPath = (name: string): string =>
  fileURLToPath(new URL(`../k6/${isOfPages(name) ? 'pages' : name}.ts`, import.meta.url));

/** Writes the configuration, and its script with the kit's summary (by hand k6 shows its own); returns their paths. */
export async function writeScript(config: LoadConfig, directory: string) {
  const [LOAD_CONFIG, path] = [join(directory, 'config.json'), join(directory, 'script.ts')];
  await writeFile(LOAD_CONFIG, JSON.stringify(config));
  const from = (file: string): string => JSON.stringify(scriptPath(file));
  const own = from(config.scenario);
  // A binding of its own: k6 would resolve a re-exported function by its path again in every iteration.
  const script = `import iteration from ${own};\nexport * from ${own};\nexport default iteration;\n`;
  await writeFile(path, `${script}export { handleSummary } from ${from('lib/summary')};\n`);
  return { LOAD_CONFIG, path };
}

/** Memory limit of k6, which reads answers completely: an endless one would fill the machine. */
const MEMORY_MB = 1024;
const MEMORY_MB_PER_VU = 8;

/**
 * With this much garbage, in per cent of what is in use, Go's collector runs a third as often as by default, which saves
 * 5 to 10 % of k6's processor time; beyond half of the memory, it runs as often as needed.
 */
const GOGC = '300';
const collectorLimit = (maxMb: number): string =>
  `${Math.round(Math.min(maxMb, totalmem() / 2 ** 20) / 2)}MiB`;

/** k6 is killed after the planned duration and this time, so that it never blocks the kit. */
const GRACE_SECONDS = 90;
/** Time for k6 to write its results after an interrupt. */
const INTERRUPT_GRACE_MS = 3_000;
/** As in a shell: 128 and the number of SIGKILL. */
const KILLED_STATUS = 137;
const METER_MS = 250;

/** Where Go looks for certificates by default, in addition to the system's file. */
export const CERTIFICATE_DIRECTORIES = '/etc/ssl/certs:/etc/pki/tls/certs';

/** Runs k6. Aborting the signal stops k6 early; its results so far are returned. */
export async function runK6(options: K6Options) {
  const { k6, config, env, outputs = [], signal, ca, judge, progress } = options;
  await using directory = await temporaryFolder('screenings-load');
  const SUMMARY = join(directory.path, 'summary.json');
  const { LOAD_CONFIG, path } = await writeScript(config, directory.path);
  if (ca !== undefined) await writeFile(join(directory.path, 'ca.pem'), ca);
  const { SSL_CERT_DIR = CERTIFICATE_DIRECTORIES } = process.env;
  const trusted = ca === undefined ? {} : { SSL_CERT_DIR: `${directory.path}:${SSL_CERT_DIR}` };
  const outs = outputs.flatMap((output) => ['--out', output]);
  const args = ['run', '--quiet', '--no-color', '--log-format=raw', ...outs, path];
  const maxMb = MEMORY_MB + MEMORY_MB_PER_VU * config.vus;
  const own = { ...baseEnvironment(), ...K6_OFFLINE, GOGC, GOMEMLIMIT: collectorLimit(maxMb) };
  const variables = { ...own, ...env, ...trusted, LOAD_CONFIG, SUMMARY };
  const child = spawnGuarded(k6, args, { env: variables });
  child.stdout.resume();
  const kill = (): boolean => child.kill('SIGKILL');
  const interrupt = (): void => {
    child.kill('SIGINT');
    setTimeout(kill, INTERRUPT_GRACE_MS).unref();
  };
  signal?.addEventListener('abort', interrupt, { once: true });
  const startedAt = Date.now();
  const pressure = measurePressure();
  const output = listen(createInterface({ input: child.stderr }), judge, (one) => {
    if (output.isHopeless || !progress?.(one)) return;
    output.isHopeless = true;
    interrupt();
  });
  const readings: { readonly atMs: number; readonly cpuSeconds: number }[] = [];
  let killed: string | undefined;
  const { seconds, timeoutSeconds, probe } = config;
  const endMs = startedAt + (seconds + (probe?.maxSeconds ?? 0) + timeoutSeconds + GRACE_SECONDS) * 1000;
  const meter = setInterval(() => {
    const used = cpuSeconds(child.pid!);
    if (used !== undefined) readings.push({ atMs: performance.now(), cpuSeconds: used });
    if ((residentMegabytes(child.pid!) ?? 0) > maxMb)
      killed = `it used more than ${maxMb} MB of memory and was stopped: check the length of the answers`;
    else if (Date.now() > endMs) killed = 'it ran longer than planned and was stopped';
    if (killed) kill();
  }, METER_MS);
  const [code] = (await once(child, 'close').finally(() => {
    clearInterval(meter);
    signal?.removeEventListener('abort', interrupt);
  })) as [number | null];
  const summary = parseJson<ScenarioSummary>(await readFile(SUMMARY, 'utf8').catch(() => ''));
  if (summary && output.isHopeless) Object.assign(summary.thresholds, { [HOPELESS_RULE]: false });
  const used = readings.at(-1)?.cpuSeconds;
  return {
    ...output,
    config,
    /** The last line of k6's own output, or why the kit killed k6. */
    lastMessage: killed ?? output.lastMessage,
    /** k6's exit status: 0, or 99 if a threshold broke; see k6's documentation for others. */
    status: code ?? KILLED_STATUS,
    summary,
    pressure: pressure(),
    /** Processor time during the run, and the generator's share of the machine's cores; empty and absent if unknown. */
    readings,
    cpuShare: used && used / ((Date.now() - startedAt) / 1000) / availableParallelism(),
  };
}

/** A line of k6's own output; undefined for the lines of a stack trace. */
const messageOf = (line: string): string | undefined =>
  /^\s*(at .*|)$/.test(line) ? undefined : line.trim().replace(/^Error: /, '');

/** Limit of arrivals in memory; beyond it a fraction is kept. */
const MAX_KEPT = 500_000;
/** More say nothing new about a target that is wrong for a day. */
const MAX_FINDINGS = 10_000;

/** Reads k6's output line by line; samples are judged and dropped, so memory is bounded. */
export function listen(
  lines: NodeJS.EventEmitter,
  judge: K6Options['judge'],
  onArrival: (one: ArrivalRecord) => void = () => {},
  maxKept = MAX_KEPT,
) {
  const output = {
    findings: [] as Finding[],
    /** The script's records except samples. */
    records: [] as LoadRecord[],
    lastMessage: '',
    /** One arrival in this many was kept in `records`. */
    oneIn: 1,
    /** The run was stopped early because almost all requests failed. */
    isHopeless: false,
  };
  let arrivals = 0;
  lines.on('line', (line: string) => {
    const record = readRecord(line);
    if (!record) output.lastMessage = messageOf(line) ?? output.lastMessage;
    else if (record.kind === 'sample') {
      if (output.findings.length < MAX_FINDINGS) output.findings.push(...(judge?.(record) ?? []));
    } else {
      const isArrival = record.kind === 'arrival';
      if (isArrival) onArrival(record);
      if (!isArrival || arrivals++ % output.oneIn === 0) output.records.push(record);
    }
    if (output.records.length < maxKept) return;
    output.oneIn *= 2;
    let index = 0;
    output.records = output.records.filter(({ kind }) => kind !== 'arrival' || index++ % 2 === 0);
  });
  return output;
}

export const arrivalsOf = (records: readonly LoadRecord[]): ArrivalRecord[] =>
  records.filter((one) => one.kind === 'arrival');

/**
 * The variables that k6 gets: no other secrets, and no K6_ settings that change a run. Destinations of metrics and
 * the dashboard are passed on; their passwords, tokens and headers are not.
 */
const PASSED_VARIABLES = [
  /^(PATH|HOME|TMPDIR|LANG|SSL_CERT_(FILE|DIR)|K6_OUT)$/,
  /^((https?|no)_proxy|(HTTPS?|NO)_PROXY)$/,
  /^K6_WEB_DASHBOARD(_(HOST|PORT|PERIOD|OPEN|EXPORT|RECORD|TAGS))?$/,
  /^K6_PROMETHEUS_RW_(SERVER_URL|PUSH_INTERVAL|TREND_STATS|TREND_AS_NATIVE_HISTOGRAM|STALE_MARKERS)$/,
  /^K6_OTEL_(SERVICE_NAME|METRIC_PREFIX|(FLUSH|EXPORT)_INTERVAL|EXPORTER_PROTOCOL)$/,
  /^K6_OTEL_(HTTP_EXPORTER_(ENDPOINT|INSECURE|URL_PATH)|GRPC_EXPORTER_(ENDPOINT|INSECURE))$/,
];

export function baseEnvironment(from: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  const isPassed = (name: string): boolean => PASSED_VARIABLES.some((pattern) => pattern.test(name));
  return Object.fromEntries(Object.entries(from).filter(([name]) => isPassed(name)));
}

const LINES = 60;
const MIN_INTERVAL_MS = 20_000;

/** A run is aborted if this share of the requests fails during a whole interval. */
const HOPELESS_SHARE = 0.9;
const HOPELESS_MS = 20_000;
/** An interval with fewer answers is not judged. */
const MIN_ANSWERS = 20;
/** Reported like a broken k6 threshold. */
const HOPELESS_RULE = `failed rate<${HOPELESS_SHARE} over ${HOPELESS_MS / 1000} s`;

/**
 * Progress lines and early abort. Keeps only counts, so that memory is bounded; time is that of the answers. The
 * function that it returns takes each answer, and returns true if the run is hopeless.
 */
export function trackProgress(
  { seconds, p99Ms }: Pick<LoadConfig, 'seconds' | 'p99Ms'>,
  tell: (line: string) => void,
): (one: Pick<ArrivalRecord, 'dueMs' | 'latencyMs' | 'status'>) => boolean {
  const intervalMs = Math.max(MIN_INTERVAL_MS, (seconds * 1000) / LINES);
  const total = { answers: 0, late: 0, failed: 0 };
  let reportedMs = 0;
  /** The counts at the beginning of the interval that is judged. */
  let before = { ...total, atMs: 0 };
  return ({ dueMs, latencyMs, status }) => {
    const atMs = dueMs + latencyMs;
    if (atMs >= reportedMs + intervalMs) {
      reportedMs = atMs - (atMs % intervalMs);
      tell(
        `  ${durationText(atMs)} of ${durationText(seconds * 1000)}: ${number(total.answers)} answers, ${number(total.late)} late, ${number(total.failed)} failed`,
      );
    }
    const [answers, failures] = [total.answers - before.answers, total.failed - before.failed];
    const isOver = atMs >= before.atMs + HOPELESS_MS;
    if (isOver) before = { ...total, atMs };
    total.answers += 1;
    if (failed(status)) total.failed += 1;
    else if (latencyMs >= p99Ms) total.late += 1;
    return isOver && answers >= MIN_ANSWERS && failures >= HOPELESS_SHARE * answers;
  };
}
