/** What a scenario is: an entry of its own file, listed in all.ts. */
import type { Option } from 'commander';
import type { LoadResult } from '../result.ts';
import type { Window } from '../k6/lib/window.ts';
import type { Session } from '../run/session.ts';
import { FLAGS } from './flags.ts';

/** What the flags say; each scenario reads those that it takes. */
export interface ScenarioOptions {
  readonly pageSize: number;
  /** Of open arrivals. */
  readonly requestsPerSecond: number;
  readonly seconds: number;
  readonly spikeFactor: number;
  /** The target is made to fail and healed again meanwhile. */
  readonly chaos?: boolean;
  readonly headSeconds: number;
  /** Of many tenants. */
  readonly pollSeconds: number;
  readonly backfills: number;
  readonly renewalSeconds: number;
  /** Of a search for a capacity. */
  readonly startRate: number;
  readonly maxRate: number;
  readonly thoroughness: number;
  /** One rate to check, instead of a search. */
  readonly at?: number | undefined;
  /** Of walks: where they end, and whether page sizes and window lengths are compared too. */
  readonly maxPages: number;
  readonly tables: boolean;
  /** Of the limiter's probe. */
  readonly maxRequests: number;
  readonly maxSeconds: number;
}

export interface Scenario {
  readonly about: string;
  /** Besides what every scenario takes. */
  readonly flags: readonly Option[];
  /** Where it asks; absent: where screenings lie, which takes some thirty requests to find. */
  readonly window?: Window;
  /** The script that is the whole run, where one is: several runners may share it. */
  readonly script?: string;
  /** Throws VoidRun where the run says nothing about the target. */
  readonly run: (session: Session, options: ScenarioOptions) => Promise<Partial<LoadResult>>;
}

/** Of scenarios that are one run of open arrivals. */
export const arrivalFlags = (requestsPerSecond: number, seconds: number): Option[] => [
  FLAGS.pageSize(100),
  FLAGS.rate(requestsPerSecond),
  FLAGS.duration(seconds),
  FLAGS.sloP99(),
  FLAGS.sloErrors(),
  FLAGS.maxVUs(),
  FLAGS.out(),
  FLAGS.kubernetes(),
  FLAGS.parallelism(),
];
