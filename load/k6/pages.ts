/**
 * Open arrivals of pages: k6 run -e BASE_URL=… -e AUTH_URL=… -e CLIENT_ID=… [-e SCENARIO=soak] load/k6/pages.ts
 * smoke: short and light · poll: windows of the last minutes (-e HEAD=5m) with few screenings or none · soak:
 * constant rate for a long time (-e DURATION=1h) · spike: a multiple of the rate (-e SPIKE_FACTOR=5) in the second
 * third
 */
import { anywhere, arrive, atHead, openArrivals, waitUntilDue, type StartPage } from './lib/arrivals.ts';
import { runSetup, SETUP, type SetupData } from './lib/setup.ts';
import {
  notServed,
  readConfig,
  scenarioName,
  thresholdsOf,
  type LoadConfig,
  type Rules,
} from './lib/config.ts';

interface Kind {
  readonly own: Partial<LoadConfig>;
  readonly thresholds: (held: Rules, config: LoadConfig) => Rules;
  readonly start: (config: LoadConfig) => StartPage;
}

/** A 401 under load means that the client renewed a token too late, or that a clock is wrong. */
const authenticated = { unauthenticated: ['count<1'] };

const KINDS: Readonly<Record<string, Kind>> = {
  smoke: {
    own: { requestsPerSecond: 5, seconds: 30 },
    thresholds: (held) => ({ ...held, ...authenticated }),
    start: anywhere,
  },
  poll: { own: { requestsPerSecond: 20, seconds: 30 }, thresholds: (held) => held, start: atHead },
  soak: {
    own: { requestsPerSecond: 20, seconds: 120 },
    thresholds: (held) => ({ ...held, ...authenticated }),
    // In outage tests, one traversal in four is a poll at the end of the window.
    start: (config) => (data, draw, session) =>
      (config.outages && draw() < 0.25 ? atHead : anywhere)(config)(data, draw, session),
  },
  spike: {
    own: { requestsPerSecond: 20, seconds: 60, spikeFactor: 5 },
    // A spike may cause late pages and 429, but no errors; after it, latency and failures must be normal again.
    thresholds: (_, { p99Ms, errorRate }) => ({
      findings: ['count<1'],
      errors: ['count<1'],
      'page_ms{phase:after}': [`p(99)<${p99Ms}`],
      'failed{phase:after}': [`rate<=${errorRate}`],
    }),
    start: anywhere,
  },
};

const name = scenarioName || 'smoke';
const kind = KINDS[name];
if (!kind) throw new Error(`-e SCENARIO=${name}: one of ${Object.keys(KINDS).join(', ')} is expected`);

const config = readConfig({ scenario: name, ...kind.own });

export const options = {
  ...SETUP,
  scenarios: openArrivals(config),
  thresholds: thresholdsOf(
    config,
    kind.thresholds({ page_ms: [`p(99)<${config.p99Ms}`], ...notServed(config) }, config),
  ),
};

export const setup = (): SetupData => runSetup(config);

const start = kind.start(config);

export default function (data: SetupData): void {
  arrive(config, data, start, waitUntilDue(config));
}
