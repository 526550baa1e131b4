/**
 * Open arrivals of pages: k6 run -e BASE_URL=… -e AUTH_URL=… -e CLIENT_ID=… [-e SCENARIO=soak] load/k6/pages.ts
 * smoke: short and light · poll: windows of the last minutes (-e HEAD=5m) with few screenings or none · soak:
 * constant rate for a long time (-e DURATION=1h) · spike: a multiple of the rate (-e SPIKE_FACTOR=5) in the second
 * third · arrivals: a step of `capacity`, without thresholds
 */
import { type DueRequest, openArrivals } from './lib/arrivals.ts';
import type { Client, PageRequest, Sent } from './lib/client.ts';
import { atLeastOne, readConfig, scenarioName as name, served, thresholdsOf } from './lib/config.ts';
import type { Rules } from './lib/config.ts';
import { HEAD_SECONDS, isOfPages, PAGES } from './lib/presets.ts';
import { clientOfVu, runSetup, SETUP, type SetupData } from './lib/setup.ts';
import { shortlyBefore } from './lib/window.ts';
import { randomSource } from '../estimate/random.ts';

if (!isOfPages(name))
  throw new Error(`-e SCENARIO=${name}: one of ${Object.keys(PAGES).join(', ')} is expected`);

const config = readConfig({ scenario: name, ...PAGES[name] });
const { p99Ms, errorRate, pageSize, outages, headSeconds = HEAD_SECONDS } = config;
const arrivals = openArrivals(config, sendPage);

/** A spike may cause late pages and 429, but no errors; after it, latency and failures must be normal again. */
const AFTER_SPIKE: Rules = {
  ...atLeastOne('pages'),
  findings: ['count<1'],
  errors: ['count<1'],
  'page_ms{phase:after}': [`p(99)<${p99Ms}`],
  'http_req_failed{phase:after}': [`rate<=${errorRate}`],
};

const EVEN: Rules = {
  // The script does not know which failures an outage explains: the kit judges them.
  ...(outages ? {} : { page_ms: [`p(99)<${p99Ms}`], ...served(config) }),
  findings: ['count<1'],
  // A 401 under load means that the client renewed a token too late, or that a clock is wrong.
  unauthenticated: ['count<1'],
};

export const options = {
  ...SETUP,
  scenarios: { [name]: arrivals.scenario },
  thresholds: thresholdsOf(name === 'arrivals' ? {} : name === 'spike' ? AFTER_SPIKE : EVEN),
};

export const setup = (): SetupData => runSetup(config);

export default arrivals.iteration;

// In outage tests, one traversal in four is a poll at the end of the window.
const pollShare = name === 'poll' ? 1 : outages ? 0.25 : 0;

/** The window in milliseconds, parsed once in each VU. */
let firstMs: number | undefined;
let lastMs = 0;

/** Begins a traversal: polls begin where new screenings arrive, others anywhere in the window. All end with it. */
function firstPage({ window: { from, to } }: SetupData, draw: () => number, client: Client): PageRequest {
  if (firstMs === undefined) [firstMs, lastMs] = [Date.parse(from), Date.parse(to)];
  if (draw() >= pollShare)
    return client.first(new Date(firstMs + draw() * (lastMs - firstMs) * 0.95).toISOString(), to, pageSize);
  const headMs = Math.max(firstMs, lastMs - headSeconds * 1000);
  return client.first(shortlyBefore(headMs, draw()), to, pageSize, 'poll');
}

/** Share of the arrivals that use a new token in outage tests. */
const RENEWAL_SHARE = 0.02;
/** Number of pages that a VU reads before it starts another traversal. */
const WALK_PAGES = 4;

let pageRequest: PageRequest | undefined;
let walked = 0;

/** Requests the next page of the VU's traversal. */
function sendPage(data: SetupData, { dueAtMs, seed }: DueRequest): Sent {
  const client = clientOfVu(config, data);
  if (outages && randomSource(~seed)() < RENEWAL_SHARE)
    try {
      client.renew();
    } catch {
      // Keeps the old token; the next request shows the failure.
    }
  if (!pageRequest || walked >= WALK_PAGES) {
    pageRequest = firstPage(data, randomSource(seed), client);
    walked = 0;
  }
  const sent = client.fetchPage(pageRequest, dueAtMs);
  pageRequest = sent.status === 200 ? client.next(pageRequest, sent.next) : undefined;
  walked += 1;
  return sent;
}
