/** The known screenings of each tenant: datasets, else those of answers, with the pages that showed them. */
import { createHash } from 'node:crypto';
import type { Exchange } from '../../client/exchange.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_PAGE_SIZE,
  orderedItems,
  isPage,
  namesTraversal,
  pageOf,
  parseQuery,
  type OrderedItem,
} from '../../client/page.ts';
import {
  canonical,
  excerpt,
  isObject,
  member,
  parseOnce,
  valuesIn,
  type Json,
  type JsonObject,
} from '../../client/json.ts';
import { VALUES_AT_MOST } from '../../client/json-text.ts';
import { MAX_ANSWER_BYTES } from '../../client/transport.ts';
import { differs, type Judge, type Mismatch } from '../../checks/mismatch.ts';
import { inWindow, sayItem, type OracleOf } from '../../checks/page.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  sameInstant,
  YEAR_10000,
  type Instant,
} from '../../data/instant.ts';
import { oncePer } from '../../data/recent.ts';
import { Oracle } from '../../data/oracle.ts';
import type { Screening } from '../../data/screening.ts';
import type { ClientName } from '../../target/target.ts';

const YEAR_1 = instant('0001-01-01T00:00:00Z').seconds;

interface Window {
  readonly from: Instant;
  readonly to: Instant;
}

interface Shown {
  readonly at: Instant;
  readonly testTime: string;
  /** The page that showed it first. */
  readonly url: string;
}

/** At most this many screenings may have a corrected testTime in a run: more are unstable ids. */
const CORRECTED_AT_MOST = 10;

/** The items of a page whose place in the order is known; none where the answer is no page. */
export const shownItems = (exchange: Exchange): OrderedItem[] =>
  isPage(exchange) ? orderedItems(exchange) : [];

/** By instant, by id and by tenant: spellings may differ. */
const COMPARED_ELSEWHERE = ['id', 'testTime', 'tenantId'];

/** A screening as an answer showed it, and the answer. */
interface Sighting {
  readonly at: Instant;
  /** Of all its values: kept in their place, so that a long run fits in the memory. */
  readonly digest: string;
  readonly exchange: Exchange;
}

export interface DatasetEnd {
  readonly client: ClientName;
  readonly ids: ReadonlySet<bigint>;
  readonly last: Instant;
}

/** So many screenings of a tenant are known by what answers showed; of more, a walk is held against itself only. */
const REMEMBERED = 50_000;
/** Of a page that tells how large items are. */
export const SMALL_PAGE = 10;
/** Of a page that is asked for to see much, where items are large: so much of what is read of an answer. */
const COMFORTABLE_SHARE = 0.25;
/** So many pages are held against what is known in the end. */
const PAGES_KEPT = 10_000;

export class Knowledge {
  private readonly sightings = new Map<string, Map<bigint, Sighting>>();
  private readonly recorded = new Map<string, Map<bigint, string>>();
  private readonly corrected = new Set<bigint>();
  private readonly unfinished = new Map<string, ReadonlySet<bigint>>();
  /** The last screenings of datasets. */
  private readonly ends = new Map<string, DatasetEnd>();
  private readonly oracles = new Map<string, Oracle>();
  private readonly shown = new Map<string, Map<bigint, Shown>>();
  /** Every page with items, in the order of the answers. */
  readonly pages: Exchange[] = [];

  /** When the traversals began that a `next` names. */
  private readonly traversals = new Map<string, number>();

  /** A traversal has gone as far as any may, and did not end. */
  unending = false;

  /** Of pages that are as large as can be read: large items leave room for fewer. */
  pageSize = MAX_PAGE_SIZE;
  /** Of an answer that is as large as any that is read. */
  private itemShare = 0;

  /** How many items that share of the largest answer holds. */
  itemsIn(share: number): number {
    return this.itemShare === 0 ? Infinity : Math.max(1, Math.floor(share / this.itemShare));
  }

  /** How large items are. */
  weigh(page: Exchange): void {
    const count = isPage(page) ? (pageOf(page).items?.length ?? 0) : 0;
    if (count > 0) this.itemShare = Math.max(this.itemShare, shareOfLargest(page) / count);
  }

  /** An answer was too large; `small` shows how large items are. */
  shrinkPages(small: Exchange): void {
    this.weigh(small);
    // Items differ in size: where the first ones are small, the smaller page is a guess.
    this.pageSize = Math.max(1, Math.min(Math.floor(this.pageSize / 8), this.itemsIn(COMFORTABLE_SHARE)));
  }

  private deepestWalk = 0;
  private widest: Window | undefined;
  private largestFullPage = 0;

  readonly oracleOf: OracleOf = (tenantId) => this.oracles.get(tenantId.toLowerCase());

  set(tenantId: string, oracle: Oracle): void {
    this.oracles.set(tenantId.toLowerCase(), oracle);
  }

  /** Undefined where the `next` says nothing of its traversal: its page shows what is there when it is asked for. */
  traversalSeqOf(next: string): number | undefined {
    return this.traversals.get(next);
  }

  /** How far the run went: the numbers of a report's `coverage`. */
  get coverage(): { deepestWalk: number; widestWindow: string; largestFullPage: number } {
    const { deepestWalk, widest, largestFullPage } = this;
    const widestWindow = widest ? `${formatInstant(widest.from)}/${formatInstant(widest.to)}` : '';
    return { deepestWalk, widestWindow, largestFullPage };
  }

  /** A walk reached this many screenings. */
  walked(screenings: number): void {
    this.deepestWalk = Math.max(this.deepestWalk, screenings);
  }

  /** A request for screenings was answered with a page, of whatever it holds. */
  served(exchange: Exchange): void {
    const parsed = isPage(exchange) ? parseQuery(exchange.request.url) : undefined;
    if (!parsed) return;
    const { from, to, pageSize = DEFAULT_PAGE_SIZE } = parsed;
    const width = ({ from, to }: Window): bigint => to.seconds - from.seconds;
    const writable = from.seconds >= YEAR_1 && to.seconds < YEAR_10000;
    if (writable && (!this.widest || width({ from, to }) > width(this.widest))) this.widest = { from, to };
    const full = pageOf(exchange).items?.length === pageSize;
    if (full) this.largestFullPage = Math.max(this.largestFullPage, pageSize);
  }

  /**
   * Adds what a page shows. What the page may not hold is no knowledge: another tenant's, or out of its window.
   * `sent`: how many requests had gone out by then; only later ones must show it too.
   */
  remember(exchange: Exchange, sent = exchange.seq): void {
    const { nextUrl } = isPage(exchange) ? pageOf(exchange) : {};
    if (nextUrl !== undefined && namesTraversal(nextUrl)) {
      this.traversals.set(nextUrl, exchange.request.traversalSeq ?? exchange.seq);
    }
    const items = shownItems(exchange);
    const parsed = parseQuery(exchange.request.url);
    if (items.length === 0 || !parsed) return;
    const tenantId = parsed.tenantId.toLowerCase();
    const shown = this.shown.get(tenantId) ?? new Map<bigint, Shown>();
    this.shown.set(tenantId, shown);
    const oracle = this.oracles.get(tenantId);
    for (const { id, at, testTime = '', tenantId: owner } of items) {
      if (shown.size >= REMEMBERED) break;
      if (!shown.has(id)) shown.set(id, { at, testTime, url: exchange.request.url });
      if (!oracle || oracle.authoritative) continue;
      if (owner?.toLowerCase() === tenantId && inWindow(at, parsed, oracle)) {
        oracle.add({ id, at, testTime }, sent, exchange.request.url);
      }
    }
    if (this.pages.length < PAGES_KEPT) this.pages.push(exchange);
  }

  /**
   * The first screening of a page that an answer before it showed with other values (2.3-object-stable), and that
   * answer. What was never shown before is remembered.
   */
  seenOtherwise(exchange: Exchange): (Mismatch & { readonly before: Exchange }) | undefined {
    const tenantId = parseQuery(exchange.request.url)?.tenantId.toLowerCase();
    if (tenantId === undefined) return undefined;
    const sightings = this.sightings.get(tenantId) ?? new Map<bigint, Sighting>();
    this.sightings.set(tenantId, sightings);
    let changed: ReturnType<Knowledge['seenOtherwise']>;
    for (const { id, at, json } of shownItems(exchange)) {
      const before = sightings.get(id);
      if (!before && sightings.size >= REMEMBERED) continue;
      const digest = digestOf(json);
      if (!before) sightings.set(id, { at, digest, exchange });
      // Another instant is another screening, or another id than before: 2.3-id-stable.
      else if (!changed && before.digest !== digest && sameInstant(before.at, at)) {
        const shown = shownItems(before.exchange).find((item) => item.id === id && sameInstant(item.at, at));
        changed = { ...firstDifference(id, shown?.json ?? null, json), before: before.exchange };
      }
    }
    return changed;
  }

  /** The texts of a tenant's dataset, which may hold more than what the specification shows of a screening. */
  record(client: ClientName, tenantId: string, dataset: readonly Screening[]): void {
    this.recorded.set(tenantId.toLowerCase(), new Map(dataset.map(({ id, json }) => [id, json])));
    const last = dataset
      .map(({ testTime }) => instant(testTime))
      .reduce<Instant | undefined>((a, b) => (a && compareInstants(a, b) > 0 ? a : b), undefined);
    const ids = new Set(dataset.map(({ id }) => id));
    if (last) this.ends.set(tenantId.toLowerCase(), { client, ids, last });
  }

  /**
   * A screening that a page of its tenant and window shows after the last one of the dataset: it has arrived since, so
   * the dataset no longer says what does not exist. Told once.
   */
  outgrown(exchange: Exchange): (DatasetEnd & { readonly later: OrderedItem }) | undefined {
    const parsed = parseQuery(exchange.request.url);
    const tenantId = parsed?.tenantId.toLowerCase() ?? '';
    const [end, oracle] = [this.ends.get(tenantId), this.oracles.get(tenantId)];
    if (!parsed || !end || !oracle) return undefined;
    const later = shownItems(exchange).find(
      ({ id, at, tenantId: owner }) =>
        compareInstants(at, end.last) > 0 &&
        !end.ids.has(id) &&
        owner?.toLowerCase() === tenantId &&
        inWindow(at, parsed, oracle),
    );
    if (!later) return undefined;
    this.ends.delete(tenantId);
    oracle.outgrown();
    return { ...end, later };
  }

  /** The further members of the dataset are shown, with its values (2.3-object-stable). */
  readonly unlikeDataset: Judge = (exchange) => {
    const recorded = this.recorded.get(parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '');
    for (const { id, json } of recorded ? shownItems(exchange) : []) {
      const text = recorded!.get(id);
      if (text === undefined) continue;
      const line = parseOnce(text);
      const name = line === json ? undefined : firstOther(line, json);
      if (name !== undefined) {
        return differs(
          `item ${id} with ${name}: ${excerpt(member(line, name))}, as the dataset has it`,
          `${name}: ${excerpt(member(json, name))}`,
        );
      }
      // From now on its answers are compared with the earlier ones.
      recorded!.delete(id);
    }
    return undefined;
  };

  /** Screenings of a tenant that are not completed: the API returns completed ones only (section 3). */
  recordUnfinished(tenantId: string, screenings: readonly Screening[]): void {
    const owned = screenings.filter((one) => one.tenantId.toLowerCase() === tenantId.toLowerCase());
    this.unfinished.set(tenantId.toLowerCase(), new Set(owned.map(({ id }) => id)));
  }

  readonly notUnfinished: Judge = (exchange) => {
    const unfinished = this.unfinished.get(parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '');
    const shown = unfinished && shownItems(exchange).find(({ id }) => unfinished.has(id));
    return (
      shown &&
      differs('completed screenings only', `${sayItem(shown)}, which the target file names as unfinished`)
    );
  };

  hasRecorded(exchange: Exchange): boolean {
    const tenantId = parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '';
    return (this.recorded.get(tenantId)?.size ?? 0) > 0 && shownItems(exchange).length > 0;
  }

  /**
   * One screening keeps its id, and no two share one (2.3-id-stable). `before`: where an earlier answer showed the id, and
   * this one shows it at another instant.
   */
  idMoved(
    exchange: Exchange,
  ): (Mismatch & { readonly item: OrderedItem; readonly before?: Shown }) | undefined {
    const earlier = this.shown.get(parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '');
    const here = new Map<bigint, Shown>();
    for (const item of shownItems(exchange)) {
      const before = earlier?.get(item.id);
      const other = before ?? here.get(item.id);
      if (other && !sameInstant(other.at, item.at)) {
        return {
          ...differs(
            `id ${item.id} for one screening only, the one at ${other.testTime}`,
            `${sayItem(item)}: another screening, or another id than before`,
          ),
          item,
          ...(before ? { before } : {}),
        };
      }
      here.set(item.id, { at: item.at, testTime: item.testTime!, url: exchange.request.url });
    }
    return undefined;
  }

  /** The testTime of a screening was corrected: no answer shows it where it was. False where too many were. */
  correct(exchange: Exchange, { id, at, testTime = '' }: OrderedItem): boolean {
    this.corrected.add(id);
    if (this.corrected.size > CORRECTED_AT_MOST) return false;
    const tenantId = parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '';
    const { url } = exchange.request;
    this.shown.get(tenantId)?.set(id, { at, testTime, url });
    const oracle = this.oracles.get(tenantId);
    if (oracle?.authoritative === false) oracle.move({ id, at, testTime }, exchange.seq, url);
    return true;
  }
}

/** Octets and values alike take time to read. */
const shareOfLargest = ({ text, json }: Exchange): number =>
  Math.max(Buffer.byteLength(text) / MAX_ANSWER_BYTES, valuesIn(json) / VALUES_AT_MOST);

/** Equal for equal screenings; the case of a UUID means nothing. */
const digestOf = (json: Json): string => (isObject(json) ? digestOfObject(json) : makeDigest(json));
const digestOfObject = oncePer<JsonObject, string>(makeDigest);

function makeDigest(json: Json): string {
  const tenantId = member(json, 'tenantId');
  const same =
    typeof tenantId === 'string' ? { ...(json as JsonObject), tenantId: tenantId.toLowerCase() } : json;
  return createHash('sha256').update(canonical(same)).digest('base64');
}

/** The first further member that two showings of a screening don't agree in. */
const firstOther = (line: Json, json: Json): string | undefined =>
  Object.keys(line as JsonObject)
    .filter((one) => !COMPARED_ELSEWHERE.includes(one))
    .find((one) => canonical(member(line, one)) !== canonical(member(json, one)));

function firstDifference(id: bigint, before: Json, here: Json): Mismatch {
  const names = [...new Set([before, here].flatMap((json) => Object.keys(json as JsonObject)))];
  const name =
    names.find((one) => canonical(member(before, one)) !== canonical(member(here, one))) ?? 'the whole';
  const say = (json: Json): string => `${name}: ${excerpt(member(json, name))}`;
  return differs(`item ${id} with ${say(before)}, as another answer showed it`, say(here));
}

/** The same screening in two answers, with other values. */
export function differentObjects(first: Exchange, second: Exchange): Mismatch | undefined {
  const knowledge = new Knowledge();
  knowledge.seenOtherwise(first);
  return knowledge.seenOtherwise(second);
}
