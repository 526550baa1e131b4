/**
 * Open arrivals of pages: k6 run -e BASE_URL=… -e AUTH_URL=… -e CLIENT_ID=… [-e SCENARIO=soak] load/k6/pages.ts
 * smoke: short and light · poll: windows of the last minutes (-e HEAD=5m) with few screenings or none · soak:
 * constant rate for a long time (-e DURATION=1h) · spike: a multiple of the rate (-e SPIKE_FACTOR=5) in the second
 * third · arrivals: a step of `capacity`, without thresholds
 */
import { anywhere, arrive, atHead, dueMomentsOf, openArrivals, type StartPage } from './lib/arrivals.ts';
import { readConfig, type Rules, scenarioName as name, served, thresholdsOf } from './lib/config.ts';
import { isOfPages, PAGES } from './lib/presets.ts';
import { runSetup, SETUP, type SetupData } from './lib/setup.ts';

if (!isOfPages(name))
  throw new Error(`-e SCENARIO=${name}: one of ${Object.keys(PAGES).join(', ')} is expected`);

const config = readConfig({ scenario: name, ...PAGES[name] });
const { p99Ms, errorRate } = config;
const due = dueMomentsOf(config);

/** A spike may cause late pages and 429, but no errors; after it, latency and failures must be normal again. */
const AFTER_SPIKE: Rules = {
  findings: ['count<1'],
  errors: ['count<1'],
  'page_ms{phase:after}': [`p(99)<${p99Ms}`],
  'http_req_failed{phase:after}': [`rate<=${errorRate}`],
};

const EVEN: Rules = {
  // The script does not know which failures an outage explains: the kit judges them.
  ...(config.outages ? {} : { page_ms: [`p(99)<${p99Ms}`], ...served(config) }),
  findings: ['count<1'],
  // A 401 under load means that the client renewed a token too late, or that a clock is wrong.
  unauthenticated: ['count<1'],
};

export const options = {
  ...SETUP,
  scenarios: { [name]: openArrivals(config, due) },
  thresholds: thresholdsOf(name === 'arrivals' ? {} : name === 'spike' ? AFTER_SPIKE : EVEN),
};

export const setup = (): SetupData => runSetup(config);

// In outage tests, one traversal in four is a poll at the end of the window.
const pollShare = name === 'poll' ? 1 : config.outages ? 0.25 : 0;
const start: StartPage = (data, draw, by) => (draw() < pollShare ? atHead : anywhere)(config)(data, draw, by);

export default function (data: SetupData): void {
  arrive(config, data, start, due);
}
