/** How a run goes: cases, limits, clock. */
import type { Clock } from '../clock.ts';
import type { ClientOptions } from '../client/client.ts';
import type { Exchange } from '../client/exchange.ts';

export interface KitOptions {
  /** Replays the same random cases. */
  readonly seed: number;
  /** Cases a law tries. */
  readonly runs: number;
  readonly maxRequests: number;
  /** Requests of the whole run: the most telling ones first, a share for each check. */
  readonly budget?: number | undefined;
  readonly timeoutMs: number;
  /** Requests in flight, at most. */
  readonly concurrency?: number | undefined;
  /** Of fast-check: together with `seed`, the one case of a law that a report printed. */
  readonly path?: string | undefined;
  /** Limits of shrinking a counterexample: evaluations, and milliseconds. */
  readonly shrink?: { readonly evaluations?: number; readonly timeMs?: number } | undefined;
  /** Sees every exchange of the run, those of retries and confirmations too. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Wait until a token of the run has expired, where none is supplied (class expiry). */
  readonly waitForExpiry?: boolean | undefined;
  /** Scales the polling timeouts for eventually consistent data; tests use 0.1. */
  readonly pollingScale?: number | undefined;
  /** Ends the run: nothing more is sent. Its reason is told. */
  readonly signal?: AbortSignal | undefined;
  /** The clock of all waits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Takes the requests in place of the network. */
  readonly dispatcher?: ClientOptions['dispatcher'];
}

export const DEFAULTS = { runs: 10, maxRequests: 6000, timeoutMs: 10_000 } as const;
