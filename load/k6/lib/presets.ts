/** What the kit and the scripts assume without flags or `-e`; also in Node. */

/** Of section 8. k6 cannot import the engine's, which a test compares with it. */
export const MAX_PAGE_SIZE = 1000;
export const SLO = { p99Ms: 500, errorRate: 0.001 };
/** A run in which more requests than these fail is aborted. */
export const ABORTED_BEYOND = 'rate<0.9';
export const TIMEOUT_SECONDS = 10;
export const HEAD_SECONDS = 300;

export const PAGES = {
  smoke: { requestsPerSecond: 5, seconds: 30 },
  poll: { requestsPerSecond: 20, seconds: 30 },
  soak: { requestsPerSecond: 20, seconds: 120 },
  spike: { requestsPerSecond: 20, seconds: 60, spikeFactor: 5 },
  arrivals: { requestsPerSecond: 20, seconds: 12 },
};
/** All scenarios with one run of open arrivals. */
export const PRESETS = { ...PAGES, token: { requestsPerSecond: 20, seconds: 30 } };

export const isOfPages = (scenario: string): scenario is keyof typeof PAGES => scenario in PAGES;
