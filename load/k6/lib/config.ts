/** What a scenario is told: one JSON file without secrets, so that it may travel in an archive. */

export interface LoadClient {
  readonly clientId: string;
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
}

export interface LoadConfig {
  readonly scenario: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: readonly LoadClient[];
  /** Where next may lead besides baseUrl. */
  readonly trustedOrigins: readonly string[];
  /** Where screenings lie. */
  readonly window: { readonly from: string; readonly to: string };
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
  /** A spike: as many times the rate between the thirds of the run. */
  readonly spikeFactor?: number;
  readonly walks?: readonly Walk[];
  /** Thresholds in k6's words, such as `"page_ms": ["p(99)<500"]`. */
  readonly thresholds: Readonly<Record<string, readonly string[]>>;
  readonly probe?: {
    readonly maxRequests: number;
    readonly maxSeconds: number;
    /** Which of the clients asks; default the first. */
    readonly client?: number;
  };
  /** Whether each request is written out for the runner to read. */
  readonly records: boolean;
  /** Several generators begin at this moment, in milliseconds since the epoch. */
  readonly startAtMs?: number;
}

/** Reads the configuration that LOAD_CONFIG names; init stage only. */
export function readConfig(): LoadConfig {
  const path = __ENV['LOAD_CONFIG'];
  if (!path) throw new Error('LOAD_CONFIG names no configuration: start scenarios with `npm run load`');
  return JSON.parse(open(path)) as LoadConfig;
}
