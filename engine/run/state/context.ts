/** The options of a run, and the context that the parts of a kit share. */
import type { Clock } from '../../clock.ts';
import type { Client, ClientOptions } from '../../client/client.ts';
import { endedAtMs, type Authorization, type Exchange, type RequestOut } from '../../client/exchange.ts';
import type { PageQuery } from '../../client/page.ts';
import type { ClientName, Target } from '../../target/target.ts';
import type { Knowledge } from './knowledge.ts';
import type { Ledger } from './ledger.ts';

/** A client with its own token, or any other Authorization. */
export type Sender = ClientName | Authorization;

export interface RunContext {
  readonly target: Target;
  readonly clock: Clock;
  readonly client: Client;
  readonly ledger: Ledger;
  readonly knowledge: Knowledge;
  /** Computes a shared value once per run, such as the survey. */
  once<T>(name: string, compute: () => Promise<T>): Promise<T>;
  /** The polling timeout for eventually consistent data, scaled by the options. */
  pollingMs(usualMs: number): number;
  /** The tenant of a client: from the target file, or from its token. */
  tenantOf(client: ClientName): Promise<string>;
  /** A request for screenings of a tenant; a query in text form is sent as given. */
  request(tenantId: string, query: string | PageQuery, by?: Sender): RequestOut;
  /** A request to this URL, such as a `next`. */
  requestTo(url: string, by?: Sender): RequestOut;
}

/** How much later than another replica one may show a change. */
export const LONGEST_LAG_MS = 5_000;

/** Waits until every replica must show what one of them showed at that time. Returns false if they must already. */
export async function untilReplicasShow(
  run: Pick<RunContext, 'clock' | 'pollingMs'>,
  shownAtMs: number,
): Promise<boolean> {
  const leftMs = shownAtMs + run.pollingMs(LONGEST_LAG_MS) - run.clock.now();
  if (leftMs > 0) await run.clock.sleep(leftMs);
  return leftMs > 0;
}

/**
 * Whether a screening that an answer lacked is gone from others too: now, or twice in a row once every replica must
 * have deleted it. Where every second answer lacks it, it is not gone.
 */
export const isGoneSince = async (
  run: Pick<RunContext, 'clock' | 'pollingMs'>,
  lacking: Exchange,
  isGone: () => Promise<boolean>,
): Promise<boolean> =>
  (await isGone()) ||
  ((await untilReplicasShow(run, endedAtMs(lacking))) && (await isGone()) && (await isGone()));

export interface KitOptions extends Omit<ClientOptions, 'onExchange' | 'onAnswer' | 'onIncident'> {
  /** Replays the same random cases. */
  readonly seed: number;
  readonly runs: number;
  /** A path of fast-check: together with `seed`, it replays the one case that a report printed. */
  readonly path?: string | undefined;
  /** Limits of shrinking a counterexample; `requests`: those that the run sends meanwhile. */
  readonly shrink?: { readonly requests?: number; readonly timeMs?: number } | undefined;
  /** Called with every exchange of the run, including retries and confirmations. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Wait until a token of the run has expired (class expiry). */
  readonly waitForExpiry?: boolean | undefined;
  /** Scales the polling timeouts for eventually consistent data; tests use 0.1. */
  readonly pollingScale?: number | undefined;
}

export const DEFAULTS = { runs: 10, maxRequests: 6000, timeoutMs: 10_000 } as const;
