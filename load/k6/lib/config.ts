/**
 * What a script is told: by the kit one JSON file without secrets, so that it may travel in an archive; by hand with
 * `-e`: BASE_URL, AUTH_URL, CLIENT_ID, and what of RATE, DURATION, PAGE_SIZE, P99_MS, VUS, SEED, SPIKE_FACTOR, FROM,
 * TO, TENANT_ID and TIMEOUT is to differ. The secret comes from the environment: SCREENINGS_CLIENT_SECRET.
 */

export interface LoadClient {
  readonly clientId: string;
  /** Empty by hand: the token names it. */
  readonly tenantId: string;
  /** The environment variable that holds the secret. */
  readonly secretVariable: string;
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
  readonly scenario: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: readonly LoadClient[];
  /** Where next may lead besides baseUrl. */
  readonly trustedOrigins: readonly string[];
  /** Where screenings lie; by hand it may be left to be found. */
  readonly window?: { readonly from: string; readonly to: string };
  readonly pageSize: number;
  /** One page in so many is judged whole; every answer's status is. */
  readonly judgeEvery: number;
  readonly timeoutSeconds: number;
  readonly seed: number;
  /** Virtual users. */
  readonly vus: number;
  /** Arrivals: requests a second over seconds. */
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** What a script's own thresholds hold the p99 against. */
  readonly p99Ms: number;
  /** Share of requests that may fail; whoever adds runners up judges by it. */
  readonly errorRate?: number;
  /** A run that several runners share, and how many do. */
  readonly runId?: string;
  readonly parts?: number;
  /** A spike: as many times the rate between the thirds of the run. */
  readonly spikeFactor?: number;
  /** polls ask for this much before the window's end. */
  readonly headSeconds?: number;
  readonly walks?: readonly Walk[];
  /** In k6's words, such as `"page_ms": ["p(99)<500"]`, instead of the script's own. */
  readonly thresholds?: Readonly<Record<string, readonly string[]>>;
  readonly probe?: {
    readonly maxRequests: number;
    readonly maxSeconds: number;
    /** Instead of naming the limiter: the first client asks until it is refused, then this one so many at once. */
    readonly other?: { readonly client: number; readonly count: number };
  };
  /**
   * The target is made to fail meanwhile: refusals are judged too, each page is written down, to be held against what
   * is stored, and tokens and polls are mixed in.
   */
  readonly outages?: boolean;
  /** Whether each request is written out for the runner to read. */
  readonly records: boolean;
  /** Several generators begin at this moment, in milliseconds since the epoch. */
  readonly startAtMs?: number;
}

const file = __ENV['LOAD_CONFIG'];
const given = file ? (JSON.parse(open(file)) as LoadConfig) : undefined;

/** Runners that write no records count latencies in a histogram: nothing else of theirs adds up. */
export const countsHistogram = given !== undefined && !given.records;
/** Started by the kit, and not by hand. */
export const byKit = given !== undefined;
export const sharedRun = given?.runId === undefined ? undefined : given;

/** The configuration; own: what a script prefers when it is started by hand. Init stage only. */
export function readConfig(own: Partial<LoadConfig> = {}): LoadConfig {
  if (given) return given;
  const text = (name: string): string => {
    const value = __ENV[name];
    if (!value) throw new Error(`-e ${name}=… is missing; BASE_URL, AUTH_URL and CLIENT_ID are needed`);
    return value.replace(/\/+$/, '');
  };
  if (!__ENV[SECRET])
    throw new Error(`the environment has no ${SECRET}: the client's secret comes from there`);
  const number = (name: string, preset: number): number => {
    const value = Number(/^(\d+(?:\.\d+)?)s?$/.exec(__ENV[name] ?? String(preset))?.[1] ?? NaN);
    if (Number.isNaN(value)) throw new Error(`-e ${name}: a number is expected, such as ${preset}`);
    return value;
  };
  const requestsPerSecond = number('RATE', own.requestsPerSecond ?? 5);
  const p99Ms = number('P99_MS', 500);
  const spikeFactor = number('SPIKE_FACTOR', own.spikeFactor ?? 1);
  const [from, to] = [__ENV['FROM'], __ENV['TO']];
  return {
    scenario: 'by hand',
    trustedOrigins: [],
    pageSize: number('PAGE_SIZE', 100),
    judgeEvery: 1,
    timeoutSeconds: number('TIMEOUT', 10),
    seed: number('SEED', 1),
    records: false,
    ...own,
    baseUrl: text('BASE_URL'),
    authUrl: text('AUTH_URL'),
    clients: [{ clientId: text('CLIENT_ID'), tenantId: __ENV['TENANT_ID'] ?? '', secretVariable: SECRET }],
    requestsPerSecond,
    seconds: number('DURATION', own.seconds ?? 30),
    p99Ms,
    ...(own.spikeFactor === undefined ? {} : { spikeFactor }),
    vus: number('VUS', Math.ceil((requestsPerSecond * spikeFactor * 2 * p99Ms) / 1000) + 20),
    ...(from && to ? { window: { from, to } } : {}),
  };
}

const SECRET = 'SCREENINGS_CLIENT_SECRET';

/** Thresholds as k6 takes them: the kit's, or the script's own. */
export const thresholdsOf = (
  config: LoadConfig,
  own: Readonly<Record<string, readonly string[]>>,
): Record<string, string[]> =>
  Object.fromEntries(Object.entries(config.thresholds ?? own).map(([metric, rules]) => [metric, [...rules]]));
