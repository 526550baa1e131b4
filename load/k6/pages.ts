/**
 * Open arrivals of pages: k6 run -e BASE_URL=… -e AUTH_URL=… -e CLIENT_ID=… [-e SCENARIO=soak] load/k6/pages.ts
 * smoke: a little of everything · poll: what tenants do most, the last minutes (-e HEAD=5m), few screenings or none ·
 * soak: even load for a long time (-e DURATION=1h) · spike: as many times the rate (-e SPIKE_FACTOR=5) in a third of it
 */
import { anywhere, arrive, atHead, openArrivals, turnOf, type StartPlace } from './lib/arrivals.ts';
import { begin, SETUP, type Begun } from './lib/begin.ts';
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
  readonly start: (config: LoadConfig) => StartPlace;
}

/** A token that expires while it is used is the client's own mistake, or the clock's. */
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
    // Where outages are tried, one walk in four is a poll of what is new.
    start: (config) => (begun, draw, session) =>
      (config.outages && draw() < 0.25 ? atHead : anywhere)(config)(begun, draw, session),
  },
  spike: {
    own: { requestsPerSecond: 20, seconds: 60, spikeFactor: 5 },
    // Late pages and 429 are what a spike is for: none is lost, and in the end it is as good as before.
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

export const setup = (): Begun => begin(config);

const start = kind.start(config);

export default function (begun: Begun): void {
  const turn = turnOf(config);
  arrive(config, begun, start, turn);
}
