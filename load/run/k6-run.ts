/** Runs one k6 script in a process of its own and reads what it wrote: requests, findings, the summary. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnGuarded } from '../../engine/guarded.ts';
import type { Sample } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { readRecord, type ArrivalRecord, type LoadRecord, type SampleRecord } from '../k6/lib/record.ts';
import type { ScenarioSummary } from '../k6/lib/summary.ts';
import { HOPELESS_RULE, type Progress } from './progress.ts';
import { cpuSeconds, residentMegabytes, watchPressure, type Pressure } from './machine.ts';

export interface K6Run {
  /** k6's exit status: 0, or 99 where a threshold broke; see k6's documentation for the others. */
  readonly status: number;
  readonly summary?: ScenarioSummary;
  readonly findings: readonly Finding[];
  /** The script's records, other than samples. */
  readonly records: readonly LoadRecord[];
  /** One arrival in this many is among them. */
  readonly oneIn: number;
  /** The last line of k6's own complaints. */
  readonly complaint: string;
  /** Share of the machine's cores that the generator used; absent where it can't be told. */
  readonly cpuShare?: number;
  /** Processor time; absent where it can't be told. */
  readonly cpuSeconds?: number;
  /** Of the machine, while it ran. */
  readonly pressure?: Pressure;
  /** It was ended before its time, as hardly any request was served. */
  readonly isHopeless: boolean;
}

interface K6Options {
  readonly k6: string;
  readonly config: LoadConfig;
  /** Secrets and headers. */
  readonly env: Readonly<Record<string, string>>;
  /** Further arguments, such as `--execution-segment 0:1/3`. */
  readonly args?: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Certificates in PEM that are trusted in addition to the system's. */
  readonly ca?: string | undefined;
  /** Looks at the answers that the script hands over. */
  readonly judge?: ((sample: SampleRecord) => readonly Finding[]) | undefined;
  readonly progress?: Progress | undefined;
}

/** With these k6 speaks to the target alone. */
export const K6_OFFLINE = {
  K6_NO_USAGE_REPORT: 'true',
  K6_AUTO_EXTENSION_RESOLUTION: 'false',
  K6_NO_COLOR: 'true',
} as const;

/** Of a script, or of one of the scenarios that share one. */
export const scriptPath = (name: string): string =>
  fileURLToPath(
    new URL(`../k6/${/^(smoke|poll|soak|spike)$/.test(name) ? 'pages' : name}.ts`, import.meta.url),
  );

/** The script with the kit's summary; by hand k6's own is shown. Returns its path. */
export async function scriptOfKit(name: string, directory: string): Promise<string> {
  const path = join(directory, 'script.ts');
  const from = (file: string): string => JSON.stringify(scriptPath(file));
  await writeFile(
    path,
    `export * from ${from(name)};\nexport { default } from ${from(name)};\nexport { handleSummary } from ${from('lib/summary')};\n`,
  );
  return path;
}

/** In which k6 writes what it has, when it is interrupted. */
const LAST_WORDS_MS = 3_000;

/** k6 keeps answers whole: a target that sends without an end would fill the machine. */
const MEMORY_MB = 1024;
const MEMORY_MB_A_VU = 8;

/** Room beyond the planned length before k6 is stopped: it must never hang the kit. */
const GRACE_SECONDS = 90;

/** Where the signal is aborted, k6 ends early, and what it had is there. */
export async function runK6(script: string, options: K6Options): Promise<K6Run> {
  const { k6, config, env, args = [], signal, ca, judge, progress } = options;
  const directory = await mkdtemp(join(tmpdir(), 'screenings-load-'));
  try {
    const [configPath, summaryPath] = ['config.json', 'summary.json'].map((name) =>
      join(directory, name),
    ) as [string, string];
    await writeFile(configPath, JSON.stringify(config));
    const trusted = ca === undefined ? {} : { SSL_CERT_FILE: join(directory, 'trusted.pem') };
    if (ca !== undefined) await writeFile(trusted.SSL_CERT_FILE!, `${await systemCertificates()}\n${ca}`);
    const child = spawnGuarded(
      k6,
      ['run', '--quiet', '--no-color', '--log-format=raw', ...args, await scriptOfKit(script, directory)],
      {
        env: {
          ...baseEnvironment(),
          ...K6_OFFLINE,
          ...env,
          ...trusted,
          LOAD_CONFIG: configPath,
          SUMMARY: summaryPath,
        },
      },
    );
    child.stdout.resume();
    const interrupt = (): void => {
      child.kill('SIGINT');
      setTimeout(() => child.kill('SIGKILL'), LAST_WORDS_MS).unref();
    };
    signal?.addEventListener('abort', interrupt, { once: true });
    const startedAt = Date.now();
    const pressure = watchPressure();
    let isHopeless = false;
    const watch = (one: ArrivalRecord): void => {
      if (!progress?.note(one) || isHopeless) return;
      isHopeless = true;
      interrupt();
    };
    const heard = listen(createInterface({ input: child.stderr }), judge, watch);
    let used: number | undefined;
    const mostMb = MEMORY_MB + MEMORY_MB_A_VU * config.vus;
    let overfull = false;
    const meter = setInterval(() => {
      used = cpuSeconds(child.pid!) ?? used;
      overfull ||= (residentMegabytes(child.pid!) ?? 0) > mostMb;
      if (overfull) child.kill('SIGKILL');
    }, 250);
    const limit = setTimeout(
      () => child.kill('SIGKILL'),
      (config.seconds + (config.probe?.maxSeconds ?? 0) + config.timeoutSeconds + GRACE_SECONDS) * 1000,
    );
    const [code] = (await once(child, 'close').finally(() => {
      clearInterval(meter);
      clearTimeout(limit);
      signal?.removeEventListener('abort', interrupt);
    })) as [number | null];
    const wallSeconds = (Date.now() - startedAt) / 1000;

    const summary = await readFile(summaryPath, 'utf8').then(
      (text) => JSON.parse(text) as ScenarioSummary,
      () => undefined,
    );
    return {
      status: code ?? 137,
      ...(summary ? { summary: isHopeless ? hopeless(summary) : summary } : {}),
      isHopeless,
      findings: heard.findings,
      records: heard.records,
      oneIn: heard.oneIn,
      pressure: pressure(),
      complaint: overfull
        ? `it had more than ${mostMb} MB in memory and was ended: how long are the answers?`
        : heard.complaint,
      ...(used === undefined
        ? {}
        : { cpuSeconds: used, cpuShare: used / wallSeconds / availableParallelism() }),
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const hopeless = (summary: ScenarioSummary): ScenarioSummary => ({
  ...summary,
  thresholds: { ...summary.thresholds, [HOPELESS_RULE]: false },
});

/** More arrivals than these are not kept: a fraction of a day's shows what all of them would. */
const MOST_KEPT = 500_000;

/** Reads what k6 writes, line by line: an answer is judged and forgotten, however many there are. */
export function listen(
  lines: NodeJS.EventEmitter,
  judge: K6Options['judge'],
  watch: (one: ArrivalRecord) => void = () => {},
  mostKept = MOST_KEPT,
) {
  const heard = {
    findings: [] as Finding[],
    records: [] as LoadRecord[],
    complaint: '',
    /** One arrival in this many was kept. */
    oneIn: 1,
  };
  let arrivals = 0;
  lines.on('line', (line: string) => {
    const record = readRecord(line);
    if (!record) heard.complaint = line.trim() || heard.complaint;
    else if (record.kind === 'sample') heard.findings.push(...(judge?.(record) ?? []));
    else {
      const isArrival = record.kind === 'arrival';
      if (isArrival) watch(record);
      if (!isArrival || arrivals++ % heard.oneIn === 0) heard.records.push(record);
    }
    if (heard.records.length < mostKept) return;
    heard.oneIn *= 2;
    let index = 0;
    heard.records = heard.records.filter(({ kind }) => kind !== 'arrival' || index++ % 2 === 0);
  });
  return heard;
}

/** Go trusts one file, and the system's folders: a file of the kit's replaces the first. */
async function systemCertificates(): Promise<string> {
  const files = [
    ...[process.env['SSL_CERT_FILE'] ?? []].flat(),
    '/etc/ssl/certs/ca-certificates.crt',
    '/etc/pki/tls/certs/ca-bundle.crt',
    '/etc/ssl/ca-bundle.pem',
    '/etc/ssl/cert.pem',
  ];
  for (const path of files) {
    const pem = await readFile(path, 'utf8').catch(() => '');
    if (pem !== '') return pem;
  }
  return '';
}

/** A request of an arrivals run. */
export type Arrival = Sample & ArrivalRecord;

export const arrivalsOf = (records: readonly LoadRecord[]): Arrival[] =>
  records.flatMap((one) =>
    one.kind !== 'arrival'
      ? []
      : [noConnection(one.errorCode ?? 0) ? { ...one, refusedConnection: true } : one],
  );

/** How long pages took, as far as they were written down. */
export const latenciesOf = (records: readonly LoadRecord[]): number[] =>
  records.flatMap((one) => (one.kind === 'arrival' ? [one.latencyMs] : one.kind === 'page' ? [one.ms] : []));

/**
 * Only what k6 needs of the caller's environment: no secret of anyone else reaches it, no K6_ setting changes a run.
 * Where its metrics and its dashboard go is the caller's to say; what opens a door there is not passed on.
 */
const KEPT = [
  ...['PATH', 'HOME', 'TMPDIR', 'LANG', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'K6_OUT'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  ...['HOST', 'PORT', 'PERIOD', 'OPEN', 'EXPORT', 'RECORD', 'TAGS'].map((name) => `K6_WEB_DASHBOARD_${name}`),
  'K6_WEB_DASHBOARD',
  ...['SERVER_URL', 'PUSH_INTERVAL', 'TREND_STATS', 'TREND_AS_NATIVE_HISTOGRAM', 'STALE_MARKERS'].map(
    (name) => `K6_PROMETHEUS_RW_${name}`,
  ),
  ...[
    ...['SERVICE_NAME', 'METRIC_PREFIX', 'FLUSH_INTERVAL', 'EXPORT_INTERVAL', 'EXPORTER_PROTOCOL'],
    ...['HTTP_EXPORTER_ENDPOINT', 'HTTP_EXPORTER_INSECURE', 'HTTP_EXPORTER_URL_PATH'],
    ...['GRPC_EXPORTER_ENDPOINT', 'GRPC_EXPORTER_INSECURE'],
  ].map((name) => `K6_OTEL_${name}`),
];

export function baseEnvironment(
  from: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  return Object.fromEntries(KEPT.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}

/** k6's codes of errors below HTTP: dialling, and connections that were reset; a timeout of the answer is none. */
const noConnection = (code: number): boolean => (code >= 1200 && code < 1300) || code === 1000;
