/** The definitions of all flags, from which each scenario selects. */
import { Option } from 'commander';
import { matching, valueParser, wholeNumber } from '../../engine/command-line.ts';
import { RATE_ALGORITHMS } from '../../reference-server/http/rate-limit.ts';
import { SEARCH_DEFAULTS } from '../estimate/figures.ts';
import type { ProbeLimits } from '../estimate/limiter-probe.ts';
import { secondsOf } from '../k6/lib/window.ts';
import { MAX_PAGE_SIZE, SLO as PRESET_SLO, TIMEOUT_SECONDS } from '../k6/lib/presets.ts';

const numberWhere = (expected: string, accepts: (value: number) => boolean): ((text: string) => number) =>
  valueParser(`${expected} is expected.`, (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    return Number.isFinite(value) && accepts(value) ? value : undefined;
  });

export const above0 = numberWhere('a number above 0', (value) => value > 0);
/** A number of things, of which there may be none. */
export const count = wholeNumber(0, 999_999_999);
export const from0 = numberWhere('a number from 0', (value) => value >= 0);
export const below1 = numberWhere('a share from 0, below 1,', (value) => value >= 0 && value < 1);
export const whole = wholeNumber(1, 999_999_999);
export const share = numberWhere('a share above 0, at most 1,', (value) => value > 0 && value <= 1);
/** A page size that the API allows (section 8). */
export const pageSize = wholeNumber(1, MAX_PAGE_SIZE);
/** `90`, `90s`, `5m` or `1h30m` in seconds. */
export const duration = valueParser(
  'a duration such as 60s or 5m is expected.',
  (text) => secondsOf(text) || undefined,
);

/** Checks only; the reference server parses the text again. */
const rate = matching(/^[1-9]\d*\/([1-9]\d*)?(ms|s|m|h)$/, 'a rate such as 100/10s is expected.');
export const text = (given: string): string => given;
const algorithm = valueParser(`Allowed choices are ${RATE_ALGORITHMS.join(', ')}.`, (name) =>
  RATE_ALGORITHMS.find((known) => known === name),
);

export type Flag = readonly [
  syntax: string,
  about: string,
  read: (text: string) => unknown,
  preset?: unknown,
];

export const optionOf = ([syntax, about, read, preset]: Flag): Option => {
  const option = new Option(syntax, about).default(preset);
  return syntax.includes('<') ? option.argParser(read) : option;
};

/** Flags with a default, which each scenario sets. */
const WITH_DEFAULT = {
  reportDir: ['--report-dir <dir>', 'directory for the results', text],
  timeout: ['--timeout <seconds>', 'timeout of a request', above0],
  seed: ['--seed <n>', 'random seed of the arrivals', whole],
  screenings: ['--screenings <n>', 'number of screenings in the reference server', whole],
  pageSize: ['--page-size <n>', 'items per page', pageSize],
  rate: ['--rate <n>', 'arrivals per second', above0],
  duration: ['--duration <time>', 'duration such as 30s or 5m; a number is in seconds', duration],
  spikeFactor: ['--spike-factor <n>', 'factor of the rate during the spike', above0],
  head: ['--head <time>', 'length of the window of a poll', duration],
  startRate: ['--start-rate <n>', 'first rate of the search, per second', above0],
  maxRate: ['--max-rate <n>', 'highest rate of the search, per second', above0],
  poll: ['--poll <time>', 'interval between the polls of a tenant', duration],
  backfills: ['--backfills <n>', 'tenants that read all screenings during the load; 0 for none', count],
  tokenRenewal: ['--token-renewal <time>', 'interval between the token requests of a tenant', duration],
  thoroughness: ['--thoroughness <n>', 'factor of the length of all steps', above0],
  sloP99: ['--slo-p99 <ms>', 'latency that 99 % of the requests must stay below', above0],
  sloErrors: ['--slo-errors <share>', 'share of requests that may fail', share],
  maxVus: ['--max-vus <n>', 'maximum number of requests in flight', whole],
} as const;

/** Not defaults of the flags: a target file may limit the probe, and --parallelism requires --kubernetes. */
export const PROBE: ProbeLimits = { maxRequests: 5000, maxSeconds: 360 };
export const PARALLELISM = 3;

const WITHOUT_DEFAULT = {
  target: ['--target <file>', 'target file; without a target the reference server is started', text],
  baseUrl: ['--base-url <url>', 'URL of the REST API, instead of a target file', text],
  authUrl: ['--auth-url <url>', 'URL of the token endpoint', text],
  clientId: ['--client-id <id>', 'client id; the secret is read from SCREENINGS_CLIENT_SECRET', text],
  tokenLifetime: ['--token-lifetime <seconds>', "lifetime of the reference server's tokens", whole],
  rateLimit: ['--rate-limit <rate>', 'rate limit of the reference server, such as 100/10s', rate],
  rateAlgorithm: ['--rate-algorithm <kind>', 'kind of its rate limiter', algorithm],
  chaos: ['--chaos', 'switch the fault commands of the target file on and off during the load', Boolean],
  out: [
    '--out <output>',
    "output of k6's metrics such as json=metrics.json; may be repeated",
    (one: string, all: readonly string[] = []): readonly string[] => [...all, one],
  ],
  at: ['--at <rate>', 'check one rate for three minutes (yes, no or undecided) instead', above0],
  maxRequests: ['--max-requests <n>', `maximum requests of the probe; default ${PROBE.maxRequests}`, whole],
  maxSeconds: ['--max-seconds <n>', `maximum seconds of the probe; default ${PROBE.maxSeconds}`, above0],
  kubernetes: ['--kubernetes <dir>', "write files for k6's operator instead of running", text],
  parallelism: ['--parallelism <n>', `number of runners on the cluster; default ${PARALLELISM}`, whole],
} as const;

/** Flags that cannot be given together. */
const OF_REFERENCE = ['screenings', 'tokenLifetime', 'rateLimit', 'rateAlgorithm'];
const CONFLICTS: Readonly<Record<string, readonly string[]>> = {
  target: ['baseUrl', 'authUrl', 'clientId', ...OF_REFERENCE],
  baseUrl: OF_REFERENCE,
  at: ['startRate', 'maxRate'],
  // The fault commands run on this machine.
  chaos: ['kubernetes'],
};

export type Values<Flags extends Readonly<Record<string, Flag>>> = {
  readonly [Name in keyof Flags]: ReturnType<Flags[Name][2]>;
};

export type ScenarioFlags = Values<typeof WITH_DEFAULT> & Partial<Values<typeof WITHOUT_DEFAULT>>;

/** The flags of a scenario with their defaults, in addition to COMMON. */
export type Defaults = { readonly [Name in keyof ScenarioFlags]?: ScenarioFlags[Name] | undefined };

/** Flags of every scenario: the target, or the settings of the reference server. */
const COMMON: Defaults = {
  ...{ target: undefined, baseUrl: undefined, authUrl: undefined, clientId: undefined },
  ...{ reportDir: 'reports', timeout: TIMEOUT_SECONDS, seed: 1 },
  ...{ screenings: 200_000, tokenLifetime: undefined, rateLimit: undefined, rateAlgorithm: undefined },
};
const MAX_VUS = 2000;
export const SLO: Defaults = { sloP99: PRESET_SLO.p99Ms, sloErrors: PRESET_SLO.errorRate, maxVus: MAX_VUS };
export const SEARCH: Defaults = { ...SEARCH_DEFAULTS, ...SLO };

export const optionsOf = (flags: Defaults): Option[] =>
  Object.entries({ ...COMMON, ...flags }).map(([name, preset]) => {
    const [syntax, about, read] = { ...WITH_DEFAULT, ...WITHOUT_DEFAULT }[name as keyof ScenarioFlags];
    return optionOf([syntax, about, read as Flag[2], preset]).conflicts([...(CONFLICTS[name] ?? [])]);
  });

/** Flags of a run; tests lower the page limit of a traversal. */
export type ScenarioOptions = ScenarioFlags & { readonly maxPages?: number };
