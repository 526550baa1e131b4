/** The Scenario type, and the definitions of all flags, from which each scenario selects. */
import { Option } from 'commander';
import { valueParser } from '../../engine/command-line.ts';
import { parseRate, RATE_ALGORITHMS } from '../../reference-server/http/rate-limit.ts';
import type { LoadResult } from '../result.ts';
import { secondsOf, type Window } from '../k6/lib/window.ts';
import type { Session } from '../run/session.ts';

const numberWhere = (expected: string, accepts: (value: number) => boolean): ((text: string) => number) =>
  valueParser(`${expected} is expected.`, (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    return Number.isFinite(value) && accepts(value) ? value : undefined;
  });

export const above0 = numberWhere('a number above 0', (value) => value > 0);
export const from0 = numberWhere('a number from 0', (value) => value >= 0);
const isWhole = (value: number): boolean => Number.isInteger(value) && value > 0 && value < 1e9;
export const whole = numberWhere('a whole number above 0', isWhole);
export const share = numberWhere('a share above 0, at most 1,', (value) => value > 0 && value <= 1);
/** A page size that the API allows (section 8). */
export const pageSize = numberWhere('1 to 1000', (value) => isWhole(value) && value <= 1000);
/** `90`, `90s`, `5m` or `1h30m` in seconds. */
export const duration = valueParser(
  'a duration such as 60s or 5m is expected.',
  (text) => secondsOf(text) || undefined,
);

/** Validates only; the reference server parses the text again. */
const rate = (text: string): string => {
  try {
    parseRate(text);
    return text;
  } catch (error) {
    return valueParser<string>((error as Error).message, () => undefined)(text);
  }
};

const option = (flags: string, about: string, read: (text: string) => unknown, preset?: unknown): Option =>
  new Option(flags, about).argParser(read).default(preset);

export const FLAGS = {
  pageSize: (preset: number) => option('--page-size <n>', 'items per page', pageSize, preset),
  rate: (preset: number) => option('--rate <n>', 'arrivals per second', above0, preset),
  duration: (preset: number) =>
    option('--duration <time>', 'duration such as 30s or 5m; a number is in seconds', duration, preset),
  chaos: () =>
    new Option('--chaos', 'switch the fault commands of the target file on and off during the load'),
  spikeFactor: () => option('--spike-factor <n>', 'factor of the rate during the spike', above0, 5),
  head: () => option('--head <time>', 'length of the window of a poll', duration, 300),
  out: () =>
    new Option(
      '--out <output>',
      "output of k6's metrics such as json=metrics.json; may be repeated",
    ).argParser((one: string, all: readonly string[] = []) => [...all, one]),
  startRate: () => option('--start-rate <n>', 'first rate of the search, per second', above0, 10),
  maxRate: () => option('--max-rate <n>', 'highest rate of the search, per second', above0, 3000),
  at: () => option('--at <rate>', 'check one rate for three minutes (yes, no or undecided) instead', above0),
  poll: () => option('--poll <time>', 'interval between the polls of a tenant', duration, 60),
  backfills: () =>
    option('--backfills <n>', 'tenants that read all screenings during the load; 0 for none', from0, 1),
  renewal: () =>
    option('--token-renewal <time>', 'interval between the token requests of a tenant', duration, 3540),
  thoroughness: () => option('--thoroughness <n>', 'factor of the length of all steps', above0, 1),
  sloP99: () => option('--slo-p99 <ms>', 'latency that 99 % of the requests must stay below', above0, 500),
  sloErrors: () => option('--slo-errors <share>', 'share of requests that may fail', share, 0.001),
  maxRequests: () =>
    option('--max-requests <n>', 'maximum number of requests of the probe; default 5000', whole),
  maxSeconds: () =>
    option('--max-seconds <n>', 'maximum duration of the probe in seconds; default 360', above0),
  maxVUs: () => option('--max-vus <n>', 'maximum number of requests in flight', whole, 2000),
  kubernetes: () => new Option('--kubernetes <dir>', "write files for k6's operator instead of running"),
  parallelism: () => option('--parallelism <n>', 'number of runners on the cluster', whole, 3),
} as const;

/** Flags of every scenario: the target, or the settings of the reference server. */
export const COMMON: readonly Option[] = [
  new Option('--target <file>', 'target file; without a target the reference server is started'),
  new Option('--base-url <url>', 'URL of the REST API, instead of a target file'),
  new Option('--auth-url <url>', 'URL of the token endpoint'),
  new Option('--client-id <id>', 'client id; the secret is read from SCREENINGS_CLIENT_SECRET'),
  new Option('--report-dir <dir>', 'directory for the results').default('reports'),
  option('--timeout <seconds>', 'timeout of a request', above0, 10),
  option('--seed <n>', 'random seed of the arrivals', whole, 1),
  option('--screenings <n>', 'number of screenings in the reference server', whole, 200_000),
  option('--token-lifetime <seconds>', "lifetime of the reference server's tokens", whole),
  option('--rate-limit <rate>', 'rate limit of the reference server, such as 100/10s', rate),
  new Option('--rate-algorithm <kind>', 'kind of its rate limiter').choices(RATE_ALGORITHMS),
];

/** Parsed flags, as commander names them; flags that a scenario does not define are undefined. */
export interface ScenarioFlags {
  readonly target?: string;
  readonly baseUrl?: string;
  readonly authUrl?: string;
  readonly clientId?: string;
  readonly reportDir: string;
  readonly timeout: number;
  readonly seed: number;
  readonly screenings: number;
  readonly tokenLifetime?: number;
  readonly rateLimit?: string;
  readonly rateAlgorithm?: string;
  readonly kubernetes?: string;
  readonly parallelism: number;
  readonly sloP99?: number;
  readonly sloErrors?: number;
  readonly maxVus?: number;
  readonly out?: readonly string[];
  readonly pageSize: number;
  readonly rate: number;
  readonly duration: number;
  readonly spikeFactor: number;
  readonly head: number;
  readonly chaos?: boolean;
  readonly poll: number;
  readonly backfills: number;
  readonly tokenRenewal: number;
  readonly startRate: number;
  readonly maxRate: number;
  readonly at?: number;
  readonly thoroughness: number;
  readonly maxRequests?: number;
  readonly maxSeconds?: number;
}

/** Options of a run: the flags, and the probe's budget from the target file. */
export type ScenarioOptions = Omit<ScenarioFlags, 'target' | 'baseUrl' | 'authUrl' | 'clientId'> & {
  readonly maxRequests: number;
  readonly maxSeconds: number;
  /** Page limit of a traversal; tests lower it. */
  readonly maxPages?: number;
};

export interface Scenario {
  readonly about: string;
  /** In addition to COMMON. */
  readonly flags: readonly Option[];
  /** Query window; if absent, a window with screenings is searched for, with about thirty requests. */
  readonly window?: Window;
  /** The only script of the run, if there is one: several runners can then share it. */
  readonly script?: string;
  /** Throws VoidRun if the run says nothing about the target. */
  readonly run: (session: Session, options: ScenarioOptions) => Promise<Partial<LoadResult>>;
}
