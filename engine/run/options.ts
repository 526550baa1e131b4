/** Options of a run: cases, limits, clock. */
import type { Clock } from '../clock.ts';
import type { ClientOptions } from '../client/client.ts';
import type { Exchange } from '../client/exchange.ts';

export interface KitOptions {
  /** Replays the same random cases. */
  readonly seed: number;
  /** Number of cases per law. */
  readonly runs: number;
  readonly maxRequests: number;
  /** Request budget of the whole run: the most informative requests first, with a share for each check. */
  readonly budget?: number | undefined;
  readonly timeoutMs: number;
  /** Concurrency limit. */
  readonly concurrency?: number | undefined;
  /** A path of fast-check: together with `seed`, it replays the one case that a report printed. */
  readonly path?: string | undefined;
  /** Limits of shrinking a counterexample. */
  readonly shrink?: { readonly evaluations?: number; readonly timeMs?: number } | undefined;
  /** Called with every exchange of the run, including retries and confirmations. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Wait until a token of the run has expired if none is supplied (class expiry). */
  readonly waitForExpiry?: boolean | undefined;
  /** Scales the polling timeouts for eventually consistent data; tests use 0.1. */
  readonly pollingScale?: number | undefined;
  /** Aborts the run: nothing more is sent. Its reason is reported. */
  readonly signal?: AbortSignal | undefined;
  /** Injected clock for all waits. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Replaces the network. */
  readonly dispatcher?: ClientOptions['dispatcher'];
}

export const DEFAULTS = { runs: 10, maxRequests: 6000, timeoutMs: 10_000 } as const;
