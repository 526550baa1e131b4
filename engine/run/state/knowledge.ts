/** The known screenings of each tenant, from datasets or answers, with the pages that showed them. */
import { createHash } from 'node:crypto';
import { endedAtMs, type Exchange } from '../../client/exchange.ts';
import {
  countOf,
  DEFAULT_PAGE_SIZE,
  isPage,
  MAX_PAGE_SIZE,
  namesTraversal,
  type OrderedItem,
  orderedItems,
  pageOf,
  parseQuery,
  shows,
} from '../../client/page.ts';
import {
  canonical,
  differingMembers,
  excerpt,
  member,
  parseOnce,
  valuesIn,
  withoutNulls,
} from '../../client/json.ts';
import type { Json } from '../../client/json.ts';
import { VALUES_AT_MOST } from '../../client/json-text.ts';
import { MAX_ANSWER_BYTES } from '../../client/transport.ts';
import { UNLESS, differs, type Judge, type Mismatch } from '../../checks/mismatch.ts';
import { differenceOf, isInWindow, sayItem, withoutCase, type OracleOf } from '../../checks/page.ts';
import { compareInstants, formatInstant, instant, sameInstant, YEAR_10000 } from '../../data/instant.ts';
import type { Instant, Window } from '../../data/instant.ts';
import { memoizeByObject } from '../../data/memoize.ts';
import type { Key, Oracle } from '../../data/oracle.ts';
import type { Screening } from '../../data/dataset.ts';
import type { ClientName } from '../../target/target.ts';

const YEAR_1 = instant('0001-01-01T00:00:00Z');

/** A screening in an answer, and that answer. */
export interface Shown {
  readonly at: Instant;
  readonly testTime: string;
  /** Of all its values; replaces them, so that a long run fits in memory. */
  readonly digest: string;
  readonly exchange: Exchange;
}

/** More corrected testTimes than this in a run, where other screenings take their places, are unstable ids. */
const REPLACED_AT_MOST = 10;

/** The items of a page that can be ordered; none if the answer is not a page. */
export const shownItems = (exchange: Exchange): OrderedItem[] =>
  isPage(exchange) ? orderedItems(exchange) : [];

/** The tenant of the request, in lower case; empty if it is no valid query. */
const tenantOf = ({ request: { url } }: Exchange): string => parseQuery(url)?.tenantId.toLowerCase() ?? '';

/** Members that are compared elsewhere, because their spelling may differ. */
const COMPARED_ELSEWHERE = ['id', 'testTime', 'tenantId'];

/** From the first to the last screening of a dataset. */
interface DatasetSpan {
  readonly client: ClientName;
  readonly first: Instant;
  readonly last: Instant;
  /** The window that the target file names: there is nothing before its first screening there, and others are ignored. */
  readonly window: Window | undefined;
}

/** A screening outside the span of its tenant's dataset. */
export interface Outside extends DatasetSpan {
  readonly item: OrderedItem;
}

/** The most screenings per tenant that are remembered from answers; beyond, a walk is only compared with itself. */
const REMEMBERED = 50_000;
/** Page size for measuring items. */
export const SMALL_PAGE = 10;
/** The share of the largest answer that a page of large items should have. */
const COMFORTABLE_SHARE = 0.25;
/** The most pages that are judged by later answers at the end. */
const PAGES_KEPT = 10_000;

export class Knowledge {
  private readonly recorded = new Map<string, Map<bigint, string>>();
  /** Those where another screening has moved to the old instant: the ids may have moved instead. */
  private readonly replaced = new Set<bigint>();
  private readonly unfinished = new Map<string, ReadonlySet<bigint>>();
  private readonly spans = new Map<string, DatasetSpan>();
  private readonly oracles = new Map<string, Oracle>();
  /** Of each tenant, each screening as an answer showed it first. */
  private readonly shown = new Map<string, Map<bigint, Shown>>();
  /** Every page with items, in the order of the answers. */
  readonly pages: Exchange[] = [];
  readonly sentBy = new WeakMap<Exchange, number>();

  /** The target reads a raw + in a query as +; undefined if unknown. */
  keepsRawPlus: boolean | undefined;

  /** When the traversal of each `next` began. */
  private readonly traversals = new Map<string, number>();

  /** A traversal reached the page limit without an end. */
  endless = false;

  /** By tenant, when answers returned screenings that were unknown or at another instant, ascending; as Date.now(). */
  readonly newAtMs = new Map<string, number[]>();

  /** See Oracle.knownBefore. */
  set knownBefore(requests: number) {
    for (const oracle of this.oracles.values()) if (!oracle.authoritative) oracle.knownBefore = requests;
  }

  /** The largest page size whose answers can be read: smaller for large items. */
  pageSize = MAX_PAGE_SIZE;
  /** The size of an item, as a share of the largest answer. */
  private itemShare = 0;

  /** The number of items that fit in this share of the largest answer. */
  itemsIn(share: number): number {
    return this.itemShare === 0 ? Infinity : Math.max(1, Math.floor(share / this.itemShare));
  }

  noteItemSize(page: Exchange): void {
    const count = isPage(page) ? countOf(page) : 0;
    if (count > 0) this.itemShare = Math.max(this.itemShare, shareOfLargest(page) / count);
    if (this.pageSize < MAX_PAGE_SIZE)
      this.pageSize = Math.max(1, Math.min(this.pageSize, this.itemsIn(COMFORTABLE_SHARE)));
  }

  /** Reduces the page size after an answer that was too large; `small` shows the size of items. */
  shrinkPages(small: Exchange): void {
    // Items differ in size: if the first ones are small, the smaller page is a guess.
    this.pageSize = Math.max(1, Math.floor(this.pageSize / 8));
    this.noteItemSize(small);
  }

  private deepestWalk = 0;
  private widest: Window | undefined;
  private largestFullPage = 0;

  readonly oracleOf: OracleOf = (tenantId) => this.oracles.get(tenantId.toLowerCase());

  set(tenantId: string, oracle: Oracle): void {
    this.oracles.set(tenantId.toLowerCase(), oracle);
  }

  /** Undefined if the `next` does not identify its traversal: its page shows the data at the time of the request. */
  traversalSeqOf(next: string): number | undefined {
    return this.traversals.get(next);
  }

  /** The numbers of a report's `coverage`. */
  get coverage(): { deepestWalk: number; widestWindow: string; largestFullPage: number } {
    const { deepestWalk, widest, largestFullPage } = this;
    const widestWindow = widest ? `${formatInstant(widest.from)}/${formatInstant(widest.to)}` : '';
    return { deepestWalk, widestWindow, largestFullPage };
  }

  noteWalk(screenings: number): void {
    this.deepestWalk = Math.max(this.deepestWalk, screenings);
  }

  noteServed(exchange: Exchange): void {
    const parsed = isPage(exchange) ? parseQuery(exchange.request.url) : undefined;
    if (!parsed) return;
    const { from, to, pageSize = DEFAULT_PAGE_SIZE } = parsed;
    const width = ({ from, to }: Window): bigint => to.seconds - from.seconds;
    const writable = from.seconds >= YEAR_1.seconds && to.seconds < YEAR_10000;
    if (writable && (!this.widest || width({ from, to }) > width(this.widest))) this.widest = { from, to };
    const full = pageOf(exchange).items?.length === pageSize;
    if (full) this.largestFullPage = Math.max(this.largestFullPage, pageSize);
  }

  /**
   * Adds the items of a page, except those of another tenant or outside its window. `sent`: the number of requests
   * sent by then; only later ones must show the items too.
   */
  remember(exchange: Exchange, sent = exchange.seq, nowMs = 0): void {
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
    let isNew = false;
    for (const item of items) {
      const { id, at, testTime = '', tenantId: owner } = item;
      if (shown.size >= REMEMBERED) break;
      if (!shown.has(id)) shown.set(id, shownBy(exchange, item));
      if (!oracle || oracle.authoritative) continue;
      if (owner?.toLowerCase() === tenantId && isInWindow(at, parsed, oracle)) {
        isNew ||= !oracle.has(id, at);
        oracle.add({ id, at, testTime }, sent, nowMs, exchange.request.url);
      }
    }
    if (isNew) this.newAtMs.set(tenantId, [...(this.newAtMs.get(tenantId) ?? []), nowMs]);
    if (this.pages.length >= PAGES_KEPT) return;
    this.pages.push(exchange);
    this.sentBy.set(exchange, sent);
  }

  /** The first screening of a page that an earlier answer showed with other values (2.3-object-stable), and that answer. */
  changedScreening(exchange: Exchange): (Mismatch & { readonly before: Exchange }) | undefined {
    const earlier = this.shown.get(tenantOf(exchange));
    for (const { id, at, json } of shownItems(exchange)) {
      const before = earlier?.get(id);
      // At another instant it is another screening, or breaks 2.3-id-stable.
      if (!before || before.digest === digestOf(json) || !sameInstant(before.at, at)) continue;
      const item = shownItems(before.exchange).find((one) => one.id === id && sameInstant(one.at, at));
      const [was, is] = differenceOf(item?.json, json) ?? [];
      if (is === undefined) continue;
      const mismatch = differs(`item ${id} with ${was}, as another answer showed it`, is);
      return { ...mismatch, before: before.exchange };
    }
    return undefined;
  }

  /** Records a tenant's dataset, whose lines may have more members than the specification defines. `window`: see DatasetSpan. */
  record(client: ClientName, tenantId: string, dataset: readonly Screening[], window?: Window): void {
    this.recorded.set(tenantId.toLowerCase(), new Map(dataset.map(({ id, json }) => [id, json])));
    const times = dataset.map(({ testTime }) => instant(testTime)).sort(compareInstants);
    const [first, last] = [times[0], times.at(-1)];
    if (first && last) this.spans.set(tenantId.toLowerCase(), { client, first, last, window });
  }

  /**
   * An unknown screening on a page of its tenant, before or after the span of the dataset: it arrived later, or the
   * dataset is a part, which may cut a tie. Returned once.
   */
  outsideDataset(exchange: Exchange): Outside | undefined {
    const parsed = parseQuery(exchange.request.url);
    const tenantId = tenantOf(exchange);
    const [span, oracle] = [this.spans.get(tenantId), this.oracles.get(tenantId)];
    if (!parsed || !span || !oracle) return undefined;
    const isOutside = (at: Instant): boolean =>
      compareInstants(at, span.last) >= 0 || (!span.window && compareInstants(at, span.first) <= 0);
    const item = shownItems(exchange).find(
      ({ id, at, tenantId: owner }) =>
        isOutside(at) &&
        !oracle.get(id) &&
        owner?.toLowerCase() === tenantId &&
        isInWindow(at, parsed, oracle) &&
        oracle.covers(at),
    );
    if (!item) return undefined;
    this.spans.delete(tenantId);
    oracle.markIncomplete();
    return { ...span, item };
  }

  /** Expects the additional members of the dataset with its values (2.3-object-stable). */
  readonly differsFromDataset: Judge = (exchange) => {
    const recorded = this.recorded.get(tenantOf(exchange));
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
      // Later answers are compared with this one.
      recorded!.delete(id);
    }
    return undefined;
  };

  /** Records screenings that are not completed: the API returns completed ones only (section 3). */
  recordUnfinished(tenantId: string, screenings: readonly Screening[]): void {
    const owned = screenings.filter((one) => one.tenantId.toLowerCase() === tenantId.toLowerCase());
    this.unfinished.set(tenantId.toLowerCase(), new Set(owned.map(({ id }) => id)));
  }

  readonly notUnfinished: Judge = (exchange) => {
    const unfinished = this.unfinished.get(tenantOf(exchange));
    const shown = unfinished && shownItems(exchange).find(({ id }) => unfinished.has(id));
    return (
      shown &&
      differs(
        'completed screenings only',
        `${sayItem(shown)}, which the target file names as unfinished${UNLESS}unfinished, if it has been completed since`,
      )
    );
  };

  hasRecorded(exchange: Exchange): boolean {
    return (this.recorded.get(tenantOf(exchange))?.size ?? 0) > 0 && shownItems(exchange).length > 0;
  }

  /**
   * One screening keeps its id, and no two share one (2.3-id-stable). `before`: the earlier answer that showed this
   * id at another instant.
   */
  movedId(
    exchange: Exchange,
  ): (Mismatch & { readonly item: OrderedItem; readonly before?: Shown }) | undefined {
    const earlier = this.shown.get(tenantOf(exchange));
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
      here.set(item.id, shownBy(exchange, item));
    }
    return undefined;
  }

  get hasChanges(): boolean {
    return this.replaced.size <= REPLACED_AT_MOST && [...this.oracles.values()].some((one) => one.hasChanged);
  }

  /**
   * Notes that a screening has left one of the instants at which two answers showed it: its testTime was corrected, or
   * it was deleted. `here`, `there`: both requests again. Returns false if it is at both, or if too many were replaced.
   */
  correct(exchange: Exchange, item: OrderedItem, before: Shown, here: Exchange, there: Exchange): boolean {
    const shown = this.shown.get(tenantOf(exchange)) ?? new Map<bigint, Shown>();
    const oracle = this.oracles.get(tenantOf(exchange));
    const { id } = item;
    const places = [
      { id, ...shownBy(exchange, item), page: here },
      { id, ...before, page: there },
    ];
    const left = places.filter((place) => !shows(place.page, place));
    const [stays] = places.filter((place) => !left.includes(place));
    const isAsBefore = (one: Key): boolean => sameInstant(shown.get(one.id)?.at ?? YEAR_1, one.at);
    const replacing = left.flatMap(({ at, page }) =>
      shownItems(page).filter((one) => sameInstant(one.at, at)),
    );
    if (!replacing.every(isAsBefore)) this.replaced.add(id);
    if (left.length === 0 || this.replaced.size > REPLACED_AT_MOST) return false;
    shown.delete(id);
    if (stays) shown.set(id, stays);
    if (oracle?.authoritative !== false || (stays && oracle.has(id, stays.at))) return true;
    oracle.forget(id);
    if (stays)
      oracle.add(
        stays,
        this.sentBy.get(exchange) ?? exchange.seq,
        endedAtMs(stays.exchange),
        stays.exchange.request.url,
      );
    return true;
  }
}

const shownBy = (exchange: Exchange, { at, testTime = '', json }: OrderedItem): Shown => ({
  at,
  testTime,
  digest: digestOf(json),
  exchange,
});

/** The larger share of both limits, octets and values: both take time to read. */
const shareOfLargest = ({ text, json }: Exchange): number =>
  Math.max(Buffer.byteLength(text) / MAX_ANSWER_BYTES, valuesIn(json) / VALUES_AT_MOST);

/** Equal for equal screenings. */
const digestOf = memoizeByObject((json: Json) =>
  createHash('sha256')
    .update(canonical(withoutCase(json)))
    .digest('base64'),
);

/** The first further member of a dataset line that a screening shows otherwise; a serializer may leave out null. */
const firstOther = (line: Json, json: Json): string | undefined =>
  differingMembers(withoutNulls(line), withoutNulls(json)).find(
    (name) => !COMPARED_ELSEWHERE.includes(name) && member(line, name) !== undefined,
  );
