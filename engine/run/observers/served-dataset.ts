/**
 * The dataset as the target serves it. Recently loaded data may appear late, and a store may have coarser instants
 * than the dataset: neither breaks a requirement.
 */
import {
  countOf,
  MAX_PAGE_SIZE,
  type OrderedItem,
  orderedItems,
  pageOf,
  type PageQuery,
} from '../../client/page.ts';
import type { Exchange } from '../../client/exchange.ts';
import {
  cutInstant,
  compareInstants,
  formatInstant,
  instant,
  isMovable,
  mostDigits,
  offsetMinutesOf,
  roundInstant,
  sameInstant,
  shift,
  type Instant,
} from '../../data/instant.ts';
import { Oracle, type Key, type OracleItem } from '../../data/oracle.ts';
import type { Screening } from '../../data/dataset.ts';
import type { ClientName } from '../../target/target.ts';
import { differs, type Mismatch } from '../../checks/mismatch.ts';
import { SMALL_PAGE } from '../state/knowledge.ts';
import type { Clock } from '../../clock.ts';
import type { RunContext } from '../state/context.ts';

/** Fetches a page that is not judged; undefined if there is none. */
export type FetchPage = (query: PageQuery) => Promise<Exchange | undefined>;

interface ServedDataset {
  readonly oracle: Oracle;
  /** Set if the dataset is finer than everything that is served. */
  readonly coarser?: { readonly mismatch: Mismatch; readonly exchange: Exchange } | undefined;
  /** The delay until the dataset appeared, if it was not there immediately. */
  readonly waitedMs?: number;
}

const LONGEST_WAIT_MS = 6_000;
const POLL_MS = 500;
/** Number of complete answers in a row, at first and after an incomplete one: one of two replicas may lag. */
const FIRST_ANSWERS = 4;
const COMPLETE_ANSWERS = 14;
/** The share of a page that is filled, so that neighbours at its ends fit. */
const FILLED_SHARE = 0.9;
const SINGLES = 4;
/** No store of instants is coarser than milliseconds: fewer digits are a fault. */
const COARSEST_DIGITS = 3;

/** Polls until `untilMs` for items of the dataset that the target does not show yet. */
interface Polling {
  readonly clock: Clock;
  readonly untilMs: number;
  readonly pageSize?: number;
}

/** The dataset as the target serves it: whether it shows late, and with how many digits. */
export async function servedDataset(
  items: readonly OracleItem[],
  fetchPage: FetchPage,
  { clock, untilMs, pageSize = MAX_PAGE_SIZE }: Polling,
): Promise<ServedDataset> {
  const exact = Oracle.of(items);
  const ordered = exact.items.filter(({ at }) => isMovable(at));
  const lookedAt = Math.max(1, Math.floor(FILLED_SHARE * pageSize));
  if (ordered.length === 0) return { oracle: exact };
  const ends = [ordered.slice(-lookedAt), ...(ordered.length > lookedAt ? [ordered.slice(0, lookedAt)] : [])];
  let waitedMs = 0;
  let asked = 0n;
  const shown: Exchange[] = [];
  for (const end of ends) {
    const began = clock.now();
    // Each time another window, because a cache may repeat the answer of one replica.
    const ask = (): Promise<Exchange | undefined> => fetchPage(around(end, pageSize, asked++));
    let exchange = await ask();
    let missing = exchange && missingItem(exchange, end);
    // A slow answer that lacks nothing is not late.
    let isLate = missing !== undefined;
    const isEnough = (complete: number): boolean => complete >= (isLate ? COMPLETE_ANSWERS : FIRST_ANSWERS);
    let waited = 0;
    for (let complete = isLate ? 0 : 1; exchange && !isEnough(complete) && clock.now() < untilMs;) {
      if (missing) await clock.sleep(POLL_MS);
      exchange = await ask();
      missing = exchange && missingItem(exchange, end);
      isLate ||= missing !== undefined;
      complete = missing ? 0 : complete + 1;
      if (complete === 1) waited = clock.now() - began;
    }
    if (!exchange) return { oracle: exact };
    if (isLate && !missing && waited >= POLL_MS) waitedMs = Math.max(waitedMs, waited);
    shown.push(exchange);
  }
  const late = waitedMs > 0 ? { waitedMs } : {};
  const coarser = await coarserThan(exact, shown, fetchPage, pageSize);
  return coarser ? { oracle: coarser.oracle, coarser, ...late } : { oracle: exact, ...late };
}

/** With a margin of two seconds, for coarser stores, and more at the end. */
const around = (items: readonly OracleItem[], pageSize: number, moreSeconds = 0n): PageQuery => ({
  from: formatInstant(shift(items[0]!.at, -2n, 0)),
  to: formatInstant(shift(items.at(-1)!.at, 2n + moreSeconds, 0)),
  pageSize,
});

/** A screening missing in the range of a page; undefined if the page has unreadable items, which may include it. */
function missingItem(exchange: Exchange, expected: readonly OracleItem[]): OracleItem | undefined {
  const held = orderedItems(exchange);
  if (held.length < countOf(exchange)) return undefined;
  const ids = new Set(held.map(({ id }) => id));
  const last = held.at(-1);
  const goesOn = pageOf(exchange).nextUrl !== undefined;
  const claimed = goesOn && last ? expected.filter(({ at }) => compareInstants(at, last.at) < 0) : expected;
  return claimed.find(({ id }) => !ids.has(id));
}

/** Rewrites testTime from the instant, with its original offset. */
const written = (item: OracleItem): OracleItem => {
  const local = /z$/i.test(item.testTime) ? {} : { offsetMinutes: offsetMinutesOf(item.testTime) };
  return { ...item, testTime: formatInstant(item.at, local) };
};

/** The stored screenings with instants as coarse as the served ones; unchanged if they differ in another way. */
export function asServed<T extends Key>(stored: readonly T[], served: readonly Key[]): readonly T[] {
  const byId = new Map(served.map((item) => [item.id, item]));
  const pairs = stored.flatMap((item) => {
    const shown = byId.get(item.id);
    return shown ? [{ item, shown }] : [];
  });
  const shown = pairs.map((pair) => pair.shown);
  const digits = mostDigits(shown, COARSEST_DIGITS);
  // Of a short page, or of none, no item may be finer than what it shows.
  const isCoarser = pairs.some(({ item }) => item.at.fraction.length > digits);
  const made = [cutInstant, roundInstant].find((make) =>
    pairs.every(({ item, shown }) => sameInstant(make(item.at, digits), shown.at)),
  );
  return made && isCoarser ? stored.map((item) => ({ ...item, at: made(item.at, digits) })) : stored;
}

/** The dataset with fewer digits, if every answer shows exactly that; otherwise undefined. */
async function coarserThan(
  exact: Oracle,
  shown: readonly Exchange[],
  fetchPage: FetchPage,
  pageSize: number,
): Promise<{ oracle: Oracle; mismatch: Mismatch; exchange: Exchange } | undefined> {
  const seen = new Map<bigint, { known: OracleItem; served: OrderedItem; exchange: Exchange }>();
  const remember = (exchange: Exchange): void => {
    for (const served of orderedItems(exchange)) {
      const known = exact.get(served.id);
      if (known) seen.set(served.id, { known, served, exchange });
    }
  };
  shown.forEach(remember);
  if (seen.size === 0) return undefined;
  const digitsOf = ({ at }: { at: Instant }): number => at.fraction.length;
  const shownDigits = (): number =>
    mostDigits(
      [...seen.values()].map(({ served }) => served),
      COARSEST_DIGITS,
    );
  const before = shownDigits();
  const unseen = exact.items.filter(
    (item) => isMovable(item.at) && !seen.has(item.id) && digitsOf(item) > before,
  );
  for (const item of unseen.slice(0, SINGLES)) {
    const exchange = await fetchPage(around([item], pageSize));
    if (exchange) remember(exchange);
  }
  const digits = shownDigits();
  const all = [...seen.values()];
  const finer = all.filter(({ known }) => digitsOf(known) > digits);
  if (finer.length === 0 || finer.length < Math.min(2, unseen.length)) return undefined;
  const made = [cutInstant, roundInstant].find((make) =>
    all.every(({ known, served }) => sameInstant(make(known.at, digits), served.at)),
  );
  if (!made) return undefined;
  const { known, served, exchange } = finer[0]!;
  const how = made === cutInstant ? 'cut' : 'rounded';
  return {
    oracle: Oracle.of(exact.items.map((item) => written({ ...item, at: made(item.at, digits) }))),
    mismatch: differs(
      `item ${known.id} at ${known.testTime}, as the dataset says`,
      `${served.testTime}: every answer shows ${digits} digits at most, so the dataset is taken as ${how} to as many`,
    ),
    exchange,
  };
}

/** Why a dataset cannot be the one of the client's tenant, in lower case; a second tenant may have no screenings. */
export function whyUnusable(
  dataset: readonly Screening[],
  client: ClientName,
  tenantId: string,
): string | undefined {
  const name = client === 'primary' ? 'dataset' : 'secondDataset';
  if (client === 'primary' && dataset.length === 0)
    return `${name} is empty: supply the screenings of the tenant, or remove the member`;
  const foreign = dataset.find((one) => one.tenantId.toLowerCase() !== tenantId);
  return (
    foreign &&
    `${name} holds screenings of tenant ${foreign.tenantId}, but clients.${client} belongs to tenant ${tenantId}`
  );
}

/** A client's dataset as it is served; deviations are reported once. */
export async function oracleOfDataset(
  run: RunContext,
  client: ClientName,
  dataset: readonly Screening[],
): Promise<Oracle> {
  const tenantId = await run.tenantOf(client);
  const items = dataset.map(({ id, testTime }) => ({
    id,
    testTime,
    at: instant(testTime),
    firstSeen: 0,
    firstSeenMs: 0,
  }));
  let tooLarge: PageQuery | undefined;
  const fetchPage: FetchPage = async (query) => {
    const exchange = await run.client.send(run.request(tenantId, query, client), { unjudged: true });
    if (exchange.transportError?.kind === 'too-large') tooLarge = query;
    return exchange.status === 200 ? exchange : undefined;
  };
  // All datasets share one deadline.
  const untilMs = await run.once(
    'until datasets show',
    async () => run.clock.now() + run.pollingMs(LONGEST_WAIT_MS),
  );
  const served = (): Promise<ServedDataset> =>
    servedDataset(items, fetchPage, { clock: run.clock, untilMs, pageSize: run.knowledge.pageSize });
  let { oracle, coarser, waitedMs } = await served();
  if (tooLarge) {
    const small = await fetchPage({ ...(tooLarge as PageQuery), pageSize: SMALL_PAGE });
    if (small) run.knowledge.shrinkPages(small);
    ({ oracle, coarser, waitedMs } = await served());
  }
  if (waitedMs) {
    run.ledger.notes.add(`the dataset of clients.${client} showed ${(waitedMs / 1000).toFixed(1)} s late`);
  }
  if (coarser) {
    const { mismatch, exchange } = coarser;
    const cause = `dataset of ${client}`;
    run.ledger.add({ id: '4.2-fractions-finer', cause, mismatch, exchange, warning: true });
  }
  return oracle;
}
