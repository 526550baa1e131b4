/**
 * A script's configuration: by the kit one JSON file without secrets, so that it may travel in an archive; by hand with
 * `-e`, as load/README.md lists it.
 */
import type { Threshold } from 'k6/options';
import { judgedShare } from './random.ts';
import type { Window } from './window.ts';

/** Thresholds in k6's words, such as `"page_ms": ["p(99)<500"]`. */
export type Rules = Readonly<Record<string, readonly Threshold[]>>;

export interface LoadClient {
  readonly clientId: string;
  /** Empty by hand: the token names it. */
  readonly tenantId: string;
  /** The environment variable that holds the secret. */
  readonly secretVariable: string;
  /** By hand, of several clients: from their file. */
  readonly secret?: string;
}

/** A window to walk, page by page. */
export interface Walk {
  readonly label: string;
  readonly from: string;
  readonly to: string;
  readonly pageSize: number;
  readonly maxPages: number;
  /** First pages of windows that begin where deep pages do are read as well. */
  readonly paired?: boolean;
}

export interface LoadConfig {
  /** Of many tenants together: how often each polls, how many read everything meanwhile, and their token requests. */
  readonly tenants?: {
    readonly pollSeconds: number;
    readonly backfills: number;
    readonly tokensPerSecond: number;
  };
  readonly scenario: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: readonly LoadClient[];
  /** Where next may lead besides baseUrl. */
  readonly trustedOrigins: readonly string[];
  /** Where screenings lie; by hand it may be left to be found. */
  readonly window?: Window;
  readonly pageSize: number;
  /** The share of the answers that is judged whole; every answer's status is. Absent: all. */
  readonly judgedShare?: number;
  readonly timeoutSeconds: number;
  readonly seed: number;
  /** Virtual users. */
  readonly vus: number;
  /** Arrivals: requests a second over seconds. */
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** The SLO of a script's own thresholds. */
  readonly p99Ms: number;
  /** Share of requests that may fail. */
  readonly errorRate: number;
  /** A run that several runners share, and how many do. */
  readonly runId?: string;
  readonly parts?: number;
  /** A spike: as many times the rate between the thirds of the run. */
  readonly spikeFactor?: number;
  /** polls ask for this much before the window's end. */
  readonly headSeconds?: number;
  readonly walks?: readonly Walk[];
  /** Instead of the script's own. */
  readonly thresholds?: Rules;
  readonly probe?: {
    readonly maxRequests: number;
    readonly maxSeconds: number;
    /** Instead of naming the limiter: the first client asks until it is rejected, then this one, `count` times. */
    readonly other?: { readonly client: number; readonly count: number };
  };
  /**
   * The target is made to fail meanwhile: refusals are judged too, each page is written down, to be held against what
   * is stored, and tokens and polls are mixed in.
   */
  readonly outages?: boolean;
  /** Another program reads k6's metrics: findings are counted there too. */
  readonly metricsRead?: boolean;
  /** The kit reads what is written of each request, and judges the answers that are handed over. */
  readonly records: boolean;
}

const file = __ENV['LOAD_CONFIG'];
const given = file ? (JSON.parse(open(file)) as LoadConfig) : undefined;

/** Of a cluster: such a runner judges by itself, and counts. */
export const sharedRun = given?.runId === undefined ? undefined : given;
/** Which of those that a script knows; empty where it is not said. */
export const scenarioName = given?.scenario ?? __ENV['SCENARIO'] ?? '';

const SECRET = 'SCREENINGS_CLIENT_SECRET';
const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, '': 1 };

/** `90`, `90s`, `5m`, `1h30m` in seconds; undefined where it is none. */
export function secondsOf(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$|^\d+(?:\.\d+)?$/.test(text)) return undefined;
  return [...text.matchAll(/([\d.]+)(ms|s|m|h|)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!,
    0,
  );
}

function variable<T>(name: string, preset: T, read: (text: string) => T | undefined, expected: string): T {
  const text = __ENV[name];
  if (!text) return preset;
  const value = read(text);
  if (value === undefined) throw new Error(`-e ${name}=${text}: ${expected} is expected`);
  return value;
}

const number = (name: string, preset: number): number =>
  variable(name, preset, (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined), 'a number');
const duration = (name: string, preset: number): number =>
  variable(name, preset, secondsOf, 'a duration such as 90s or 5m');

function required(name: string): string {
  const value = __ENV[name];
  if (!value) throw new Error(`-e ${name}=… is missing; BASE_URL, AUTH_URL and CLIENT_ID are needed`);
  return value.replace(/\/+$/, '');
}

/** Lines of `client_id,client_secret`, or of `client_id,client_secret,tenant_id`. */
function clientsIn(csv: string): LoadClient[] {
  const rows = csv.split(/\r?\n/).filter((line) => line.trim() !== '' && !/^client_?id,/i.test(line));
  return rows.map((line, index) => {
    const [clientId = '', secret = '', tenantId = ''] = line.split(',').map((cell) => cell.trim());
    if (!clientId || !secret) throw new Error(`-e CLIENTS: row ${index + 1} is not client_id,client_secret`);
    return { clientId, secret, tenantId, secretVariable: '' };
  });
}

/** The configuration; own: what a script prefers when it is started by hand. Init stage only. */
export function readConfig(own: Partial<LoadConfig> = {}): LoadConfig {
  if (given) return given;
  const requestsPerSecond = number('RATE', own.requestsPerSecond ?? 5);
  const p99Ms = number('P99_MS', 500);
  const spikeFactor = number('SPIKE_FACTOR', own.spikeFactor ?? 1);
  const [from, to] = [__ENV['FROM'], __ENV['TO']];
  const clients = __ENV['CLIENTS']
    ? clientsIn(open(__ENV['CLIENTS']))
    : [{ clientId: required('CLIENT_ID'), tenantId: __ENV['TENANT_ID'] ?? '', secretVariable: SECRET }];
  return {
    scenario: 'by hand',
    trustedOrigins: [],
    pageSize: number('PAGE_SIZE', 100),
    timeoutSeconds: duration('TIMEOUT', 10),
    seed: number('SEED', 1),
    records: false,
    ...own,
    judgedShare: judgedShare(requestsPerSecond * spikeFactor),
    baseUrl: required('BASE_URL'),
    authUrl: required('AUTH_URL'),
    clients,
    requestsPerSecond,
    seconds: duration('DURATION', own.seconds ?? 30),
    p99Ms,
    errorRate: number('ERRORS', 0.001),
    headSeconds: duration('HEAD', 300),
    ...(own.spikeFactor === undefined ? {} : { spikeFactor }),
    vus: number('VUS', Math.ceil((requestsPerSecond * spikeFactor * 2 * p99Ms) / 1000) + 20),
    ...(from && to ? { window: { from, to } } : {}),
  };
}

/** A request without a page, or dropped for want of VUs, is not served; a run that serves hardly any is aborted. */
export const notServed = ({ errorRate, requestsPerSecond, seconds }: LoadConfig): Rules => ({
  findings: ['count<1'],
  failed: [`rate<=${errorRate}`, { threshold: 'rate<0.9', abortOnFail: true, delayAbortEval: '20s' }],
  dropped_iterations: [`count<=${Math.floor(errorRate * requestsPerSecond * seconds)}`],
});

/** Metrics that are not counted where the kit reads a record of each request. */
const OF_METRICS = /^(findings|failed|page_ms)\b/;

/** Thresholds as k6 takes them: the kit's, or the script's own with what `-e THRESHOLDS={"page_ms":["p(99)<300"]}` says. */
export function thresholdsOf(config: LoadConfig, own: Rules): Record<string, Threshold[]> {
  const more = variable('THRESHOLDS', {}, rulesIn, 'JSON such as {"page_ms":["p(99)<300"]}');
  const rules = config.thresholds ?? { ...own, ...more };
  return Object.fromEntries(
    Object.entries(rules)
      .filter(([metric]) => !config.records || config.metricsRead || !OF_METRICS.test(metric))
      .map(([metric, all]) => [metric, [...all]]),
  );
}

function rulesIn(text: string): Rules | undefined {
  try {
    const rules = JSON.parse(text) as Rules;
    return Object.values(rules).every(Array.isArray) ? rules : undefined;
  } catch {
    return undefined;
  }
}
