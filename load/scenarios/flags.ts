/** The Scenario type, and the definitions of all flags, from which each scenario selects. */
import { InvalidArgumentError, Option } from 'commander';
import { parseRate, RATE_ALGORITHMS } from '../../reference-server/http/rate-limit.ts';
import type { LoadResult } from '../result.ts';
import { secondsOf, type Window } from '../k6/lib/window.ts';
import type { Session } from '../run/session.ts';

export const above0 = (text: string): number => {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new InvalidArgumentError('a number above 0 is expected.');
  return value;
};

export const from0 = (text: string): number => {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0) || !Number.isFinite(value))
    throw new InvalidArgumentError('a number from 0 is expected.');
  return value;
};

export const whole = (text: string): number => {
  if (!/^\d{1,9}$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('a whole number above 0 is expected.');
  return Number(text);
};

/** A share above 0 and at most 1. */
export const share = (text: string): number => {
  const value = above0(text);
  if (value > 1) throw new InvalidArgumentError('a share above 0, at most 1, is expected.');
  return value;
};

/** A page size that the API allows (section 8). */
export const pageSize = (text: string): number => {
  const value = whole(text);
  if (value > 1000) throw new InvalidArgumentError('1 to 1000 is expected.');
  return value;
};

/** `90`, `90s`, `5m` or `1h30m` in seconds. */
export const duration = (text: string): number => {
  const seconds = secondsOf(text);
  if (!seconds) throw new InvalidArgumentError('a duration such as 60s or 5m is expected.');
  return seconds;
};

/** Validates only; the reference server parses the text again. */
const rate = (text: string): string => {
  try {
    parseRate(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return text;
};

const option = (flags: string, about: string, read: (text: string) => unknown, preset?: unknown): Option =>
  new Option(flags, about).argParser(read).default(preset);

export const FLAGS = {
  pageSize: (preset: number) => option('--page-size <n>', 'items a page', pageSize, preset),
  rate: (preset: number) => option('--rate <n>', 'arrivals a second', above0, preset),
  duration: (preset: number) =>
    option('--duration <time>', 'such as 30s or 5m, default in seconds', duration, preset),
  chaos: () =>
    new Option('--chaos', 'the fault commands of the target file are switched on and off meanwhile'),
  spikeFactor: () => option('--spike-factor <n>', 'times the rate', above0, 5),
  head: () => option('--head <time>', 'how far back a poll asks', duration, 300),
  out: () =>
    new Option('--out <output>', "of k6's metrics, such as json=metrics.json; may be repeated").argParser(
      (one: string, all: readonly string[] = []) => [...all, one],
    ),
  startRate: () => option('--start-rate <n>', 'of the search', above0, 10),
  maxRate: () => option('--max-rate <n>', 'of the search', above0, 3000),
  at: () =>
    option('--at <rate>', 'one rate for three minutes instead of a search: yes, no, undecided', above0),
  poll: () => option('--poll <time>', 'how often each tenant polls', duration, 60),
  backfills: () => option('--backfills <n>', 'tenants that read everything meanwhile; 0 for none', from0, 1),
  renewal: () => option('--token-renewal <time>', 'how often each tenant asks for a token', duration, 3540),
  thoroughness: () => option('--thoroughness <n>', 'scales the length of the steps', above0, 1),
  sloP99: () => option('--slo-p99 <ms>', 'latency that 99 % of requests stay below', above0, 500),
  sloErrors: () => option('--slo-errors <share>', 'share of requests that may fail', share, 0.001),
  maxRequests: () => option('--max-requests <n>', 'of the probe; default 5000', whole),
  maxSeconds: () => option('--max-seconds <n>', 'of the probe; default 360', above0),
  maxVUs: () => option('--max-vus <n>', 'requests in flight at most', whole, 2000),
  kubernetes: () => new Option('--kubernetes <dir>', "write what k6's operator needs instead of running"),
  parallelism: () => option('--parallelism <n>', 'runners on the cluster', whole, 3),
} as const;

/** Flags of every scenario: the target, or the settings of the reference server. */
export const COMMON: readonly Option[] = [
  new Option('--target <file>', 'the target file; without it the reference server is started'),
  new Option('--base-url <url>', 'of the REST API, without a target file'),
  new Option('--auth-url <url>', 'of the token endpoint'),
  new Option('--client-id <id>', 'the secret comes from SCREENINGS_CLIENT_SECRET'),
  new Option('--report-dir <dir>', 'where results go').default('reports'),
  option('--timeout <seconds>', 'of one request', above0, 10),
  option('--seed <n>', 'the same seed draws the same arrivals', whole, 1),
  option('--screenings <n>', 'in the reference server', whole, 200_000),
  option('--token-lifetime <seconds>', "of the reference server's tokens", whole),
  option('--rate-limit <rate>', 'of the reference server, such as 100/10s', rate),
  new Option('--rate-algorithm <kind>', 'of that limit').choices(RATE_ALGORITHMS),
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
