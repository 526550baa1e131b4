/** A script's configuration: from the kit a JSON file without secrets, by hand `-e` as listed in load/README.md. */
import type { Threshold } from 'k6/options';
import type { ProbeLimits } from '../../estimate/limiter-probe.ts';
import { enoughVUs } from '../../estimate/random.ts';
import { ABORTED_BEYOND, HEAD_SECONDS, SLO, TIMEOUT_SECONDS } from './presets.ts';
import { parseJson } from './record.ts';
import { secondsOf, type Window } from './window.ts';

/** Thresholds in k6's syntax, such as `"page_ms": ["p(99)<500"]`. */
export type Rules = Readonly<Record<string, readonly Threshold[]>>;

export interface LoadClient {
  readonly clientId: string;
  /** Empty by hand; then the token gives it. */
  readonly tenantId: string;
  /** Name of the environment variable with the secret. */
  readonly secretVariable: string;
  /** By hand with a file of clients: the secret in the file. */
  readonly secret?: string;
}

export interface Walk extends Window {
  readonly pageSize: number;
  readonly maxPages: number;
  /** Also reads first pages of windows that start where deep pages do. */
  readonly paired?: boolean;
}

export interface LoadConfig {
  /** For many tenants: seconds between a tenant's polls, concurrent back-fills, and the rate of token requests. */
  readonly tenants?: Readonly<Record<'pollSeconds' | 'backfills' | 'tokensPerSecond', number>>;
  readonly scenario: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: readonly LoadClient[];
  readonly trustedOrigins: readonly string[];
  /** The window with screenings; by hand it is found if absent. */
  readonly window?: Window;
  readonly pageSize: number;
  readonly timeoutSeconds: number;
  readonly seed: number;
  readonly vus: number;
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** SLO for the script's default thresholds. */
  readonly p99Ms: number;
  readonly errorRate: number;
  /** Id of a run that several runners share, and their number. */
  readonly runId?: string;
  readonly parts?: number;
  /** Factor of the rate in the second third of the run. */
  readonly spikeFactor?: number;
  readonly headSeconds?: number;
  readonly walks?: readonly Walk[];
  readonly probe?: ProbeLimits & {
    /** Instead, each client in turn reads at most `count` pages, until one is rejected. */
    readonly reads?: readonly (Readonly<Record<'client' | 'count' | 'concurrency', number>> & {
      readonly isFull: boolean;
    })[];
  };
  /** The target is made to fail: failures are judged too, pages recorded, token requests and polls mixed in. */
  readonly outages?: boolean;
  /** Another program reads k6's metrics, so findings are also counted there. */
  readonly metricsRead?: boolean;
}

const file = __ENV['LOAD_CONFIG'];
const given = file ? (JSON.parse(open(file)) as LoadConfig) : undefined;

/** Set on a cluster's runners, which judge answers themselves and count findings. */
export const sharedRun = given?.runId === undefined ? undefined : given;
/** The kit reads a record of each request and judges sampled answers. */
export const areRecordsRead = given !== undefined && !sharedRun;
/** If nothing reads metrics by their tags, there are none: each tag costs processor time in every request. */
export const areMetricsRead = !areRecordsRead || given?.metricsRead === true;
/** The scenario, for a script with several. */
export const scenarioName = given?.scenario ?? __ENV['SCENARIO'] ?? 'smoke';

const SECRET = 'SCREENINGS_CLIENT_SECRET';

function variable<T>(name: string, preset: T, read: (text: string) => T | undefined, expected: string): T {
  const text = __ENV[name];
  if (!text) return preset;
  const value = read(text);
  if (value === undefined) throw new Error(`-e ${name}=${text}: expected ${expected}`);
  return value;
}

const number = (name: string, preset: number): number =>
  variable(name, preset, (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined), 'a number');
const duration = (name: string, preset: number): number =>
  variable(name, preset, secondsOf, 'a duration such as 90s or 5m');

function required(name: string): string {
  const value = __ENV[name];
  if (!value) throw new Error(`-e ${name}=… is missing; BASE_URL, AUTH_URL and CLIENT_ID are required`);
  return value.replace(/\/+$/, '');
}

/** Parses lines of `client_id,client_secret` or `client_id,client_secret,tenant_id`. */
function parseClients(csv: string): LoadClient[] {
  const rows = csv.split(/\r?\n/).filter((line) => line.trim() !== '' && !/^client_?id,/i.test(line));
  return rows.map((line, index) => {
    const [clientId = '', secret = '', tenantId = ''] = line.split(',').map((cell) => cell.trim());
    if (!clientId || !secret) throw new Error(`-e CLIENTS: row ${index + 1} is not client_id,client_secret`);
    return { clientId, secret, tenantId, secretVariable: '' };
  });
}

/** Returns the configuration; `own` are the script's defaults by hand. For the init stage only. */
export function readConfig(own: Partial<LoadConfig> = {}): LoadConfig {
  if (given) return given;
  const requestsPerSecond = number('RATE', own.requestsPerSecond ?? 5);
  const p99Ms = number('P99_MS', SLO.p99Ms);
  const spikeFactor = number('SPIKE_FACTOR', own.spikeFactor ?? 1);
  const [from, to] = [__ENV['FROM'], __ENV['TO']];
  if (!from !== !to) throw new Error('-e FROM and -e TO must be given together');
  const clients = __ENV['CLIENTS']
    ? parseClients(open(__ENV['CLIENTS']))
    : [{ clientId: required('CLIENT_ID'), tenantId: __ENV['TENANT_ID'] ?? '', secretVariable: SECRET }];
  return {
    scenario: 'by hand',
    trustedOrigins: [],
    pageSize: number('PAGE_SIZE', 100),
    timeoutSeconds: duration('TIMEOUT', TIMEOUT_SECONDS),
    seed: number('SEED', 1),
    ...own,
    baseUrl: required('BASE_URL'),
    authUrl: required('AUTH_URL'),
    clients,
    requestsPerSecond,
    seconds: duration('DURATION', own.seconds ?? 30),
    p99Ms,
    errorRate: number('ERRORS', SLO.errorRate),
    headSeconds: duration('HEAD', HEAD_SECONDS),
    ...(own.spikeFactor === undefined ? {} : { spikeFactor }),
    vus: number('VUS', enoughVUs(requestsPerSecond * spikeFactor, p99Ms)),
    ...(from && to ? { window: { from, to } } : {}),
  };
}

/** By hand: k6 alone would pass a run without a request, such as one whose every iteration throws. */
export const atLeastOne = (counter: string): Rules => (given ? {} : { [counter]: ['count>0'] });

/** Limits failed requests (also 429 and tokens) and dropped iterations; aborts a run in which 90 % fail. */
export const served = ({ errorRate, requestsPerSecond, seconds }: LoadConfig): Rules => ({
  ...atLeastOne('pages'),
  findings: ['count<1'],
  http_req_failed: [
    `rate<=${errorRate}`,
    { threshold: ABORTED_BEYOND, abortOnFail: true, delayAbortEval: '20s' },
  ],
  dropped_iterations: [`count<=${Math.floor(errorRate * requestsPerSecond * seconds)}`],
});

/** Metrics that the kit judges itself by the records, without late answers of the warm-up. */
const RECORDED_METRICS = /^(checks|findings|http_req_failed|page_ms)\b/;

/** The thresholds for k6: the script's own and `-e THRESHOLDS={"page_ms":["p(99)<300"]}`. */
export function thresholdsOf(own: Rules): Record<string, Threshold[]> {
  const more: Rules = variable('THRESHOLDS', {}, parseRules, 'JSON such as {"page_ms":["p(99)<300"]}');
  const metrics = Object.keys({ ...own, ...more }).filter(
    (metric) => !areRecordsRead || !RECORDED_METRICS.test(metric),
  );
  return Object.fromEntries(
    metrics.map((metric) => [metric, [...(own[metric] ?? []), ...(more[metric] ?? [])]]),
  );
}

function parseRules(text: string): Rules | undefined {
  const rules = parseJson<Rules>(text.trim());
  return rules && Object.values(rules).every(Array.isArray) ? rules : undefined;
}
