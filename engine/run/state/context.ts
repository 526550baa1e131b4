/** The options of a run, the context that the parts of a kit share, and what may have changed on a live tenant. */
import { randomInt } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Client, ClientOptions } from '../../client/client.ts';
import { endedAtMs, type Authorization, type Exchange, type RequestOut } from '../../client/exchange.ts';
import { endingLater, pageOf, shows, tenantOfPath, withoutTraversal } from '../../client/page.ts';
import type { PageQuery } from '../../client/page.ts';
import type { Key } from '../../data/oracle.ts';
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
  /** The tenant of a client: from the target file, or from its token. Throws Untested if the client is not supplied. */
  tenantOf(client: ClientName): Promise<string>;
  /** A request for screenings of a tenant; a query in text form is sent as given. */
  request(tenantId: string, query: string | PageQuery, by?: Sender): RequestOut;
  /** A request to this URL, such as a `next`. */
  requestTo(url: string, by?: Sender): RequestOut;
}

/** How much later than another replica one may show a change. */
export const LONGEST_LAG_MS = 5_000;
/** How long a page may be repeated by a cache of ten seconds in front. */
export const LONGEST_CACHED_MS = 11_000;

/** Waits until every replica must show what one of them showed at that time. Returns false if they must already. */
export async function untilReplicasShow(
  run: Pick<RunContext, 'clock' | 'pollingMs'>,
  shownAtMs: number,
  lagMs = LONGEST_LAG_MS,
): Promise<boolean> {
  const leftMs = shownAtMs + run.pollingMs(lagMs) - run.clock.now();
  if (leftMs > 0) await run.clock.sleep(leftMs);
  return leftMs > 0;
}

/** The most pages that are requested again for screenings that an answer lacks. */
const WITNESSES_AT_MOST = 30;

/**
 * Those of these screenings that an answer must not lack: they were known before its request, and still exist. Without
 * a dataset, one that the page which showed it first lacks now, twice since every second answer may lack it, was
 * deleted or moved, and is not expected from then on.
 */
export async function stillThere(
  run: RunContext,
  lacking: Exchange,
  missing: readonly Key[],
): Promise<readonly Key[]> {
  const { url: lackingUrl, authorization, provoked } = lacking.request;
  const oracle = run.knowledge.oracleOf(tenantOfPath(lackingUrl) ?? '');
  if (!oracle || oracle.authoritative) return missing;
  const expected = missing
    .flatMap(({ id, at }) => (oracle.has(id, at) ? [oracle.get(id)!] : []))
    .filter((item) => item.firstSeen < lacking.seq && oracle.isSettled(item));
  const witnesses = [...new Set(expected.map(({ witness }) => witness))].slice(0, WITNESSES_AT_MOST);
  const lookedUp = expected.filter(({ witness }) => witnesses.includes(witness));
  const [present, absent] = [new Set<Key>(), new Set<Key>()];
  for (const url of [...witnesses, ...witnesses]) {
    const here = lookedUp.filter((item) => item.witness === url && !present.has(item));
    // No page has shown it yet: only the dataset contains it.
    if (url === undefined || here.length === 0) continue;
    const request = run.requestTo(endingLater(withoutTraversal(url), run.client.requests), authorization);
    const page = await run.client.send({ ...request, provoked }, { unjudged: true });
    // A failed request shows nothing.
    if (pageOf(page).items) for (const item of here) (shows(page, item) ? present : absent).add(item);
  }
  const isGone = (item: Key): boolean => absent.has(item) && !present.has(item);
  for (const item of lookedUp.filter(isGone)) oracle.forget(item.id);
  return lookedUp.filter((item) => !isGone(item));
}

/** The same once every replica must have deleted what the answer lacks. */
export async function stillThereLater(
  run: RunContext,
  lacking: Exchange,
  missing: readonly Key[],
): Promise<readonly Key[]> {
  const left = await stillThere(run, lacking, missing);
  const isLater = left.length > 0 && (await untilReplicasShow(run, endedAtMs(lacking)));
  return isLater ? stillThere(run, lacking, left) : left;
}

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

/** Any seed that fast-check and the flags accept. */
export const randomSeed = (): number => randomInt(2 ** 31);

export const DEFAULTS = { runs: 10, maxRequests: 6000, timeoutMs: 10_000 } as const;
