/** What a run knows of each tenant's screenings: datasets, else what answers have shown, and which pages showed it. */
import { createHash } from 'node:crypto';
import type { Exchange } from '../../client/exchange.ts';
import {
  DEFAULT_PAGE_SIZE,
  isOrdered,
  isPage,
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
  type Json,
  type JsonObject,
} from '../../client/json.ts';
import { differs, type Judge, type Mismatch } from '../../checks/mismatch.ts';
import { inWindow, sayItem, type OracleOf } from '../../checks/page.ts';
import { formatInstant, instant, sameInstant, YEAR_10000, type Instant } from '../../data/instant.ts';
import { oncePer } from '../../data/recent.ts';
import { Oracle } from '../../data/oracle.ts';

const YEAR_1 = instant('0001-01-01T00:00:00Z').seconds;

interface Window {
  readonly from: Instant;
  readonly to: Instant;
}

interface Shown {
  readonly at: Instant;
  readonly testTime: string;
}

/** The items of a page whose place in the order is known; none where the answer is no page. */
export const orderedItems = (exchange: Exchange): OrderedItem[] =>
  isPage(exchange) ? (pageOf(exchange).items ?? []).filter(isOrdered) : [];

/** By instant, by id and by tenant: spellings may differ. */
const COMPARED_ELSEWHERE = ['id', 'testTime', 'tenantId'];

/** A screening as an answer showed it, and the answer. */
interface Sighting {
  readonly at: Instant;
  /** Of all its values: kept in their place, so that a long run fits in the memory. */
  readonly digest: string;
  readonly exchange: Exchange;
}

/** So many screenings of a tenant are known by what answers showed; of more, a walk is held against itself only. */
const REMEMBERED = 50_000;
/** So many pages are held against what is known in the end. */
const PAGES_KEPT = 10_000;

export class Knowledge {
  private readonly sightings = new Map<string, Map<bigint, Sighting>>();
  private readonly recorded = new Map<string, Map<bigint, string>>();
  private readonly oracles = new Map<string, Oracle>();
  private readonly shown = new Map<string, Map<bigint, Shown>>();
  /** Every page with items, in the order of the answers. */
  readonly pages: Exchange[] = [];

  private deepestWalk = 0;
  private widest: Window | undefined;
  private largestFullPage = 0;

  readonly oracleOf: OracleOf = (tenantId) => this.oracles.get(tenantId.toLowerCase());

  set(tenantId: string, oracle: Oracle): void {
    this.oracles.set(tenantId.toLowerCase(), oracle);
  }

  /** How far the run went: the numbers of a report's `coverage`. */
  get coverage(): { deepestWalk: number; widestWindow: string; largestFullPage: number } {
    const { deepestWalk, widest, largestFullPage } = this;
    const widestWindow = widest ? `${formatInstant(widest.from)}/${formatInstant(widest.to)}` : '';
    return { deepestWalk, widestWindow, largestFullPage };
  }

  /** A walk came to so many screenings. */
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
    const items = orderedItems(exchange);
    const parsed = parseQuery(exchange.request.url);
    if (items.length === 0 || !parsed) return;
    const tenantId = parsed.tenantId.toLowerCase();
    const shown = this.shown.get(tenantId) ?? new Map<bigint, Shown>();
    this.shown.set(tenantId, shown);
    const oracle = this.oracles.get(tenantId);
    for (const { id, at, testTime = '', tenantId: owner } of items) {
      if (shown.size >= REMEMBERED) break;
      if (!shown.has(id)) shown.set(id, { at, testTime });
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
    for (const { id, at, json } of orderedItems(exchange)) {
      const before = sightings.get(id);
      if (!before && sightings.size >= REMEMBERED) continue;
      const digest = digestOf(json);
      if (!before) sightings.set(id, { at, digest, exchange });
      // Another instant is another screening, or another id than before: 2.3-id-stable.
      else if (!changed && before.digest !== digest && sameInstant(before.at, at)) {
        const shown = orderedItems(before.exchange).find(
          (item) => item.id === id && sameInstant(item.at, at),
        );
        changed = { ...firstDifference(id, shown?.json ?? null, json), before: before.exchange };
      }
    }
    return changed;
  }

  /** The texts of a tenant's dataset, which may hold more than what the specification shows of a screening. */
  record(tenantId: string, dataset: readonly { readonly id: bigint; readonly json: string }[]): void {
    this.recorded.set(tenantId.toLowerCase(), new Map(dataset.map(({ id, json }) => [id, json])));
  }

  /** The further members of the dataset are shown, with its values (2.3-object-stable). */
  readonly unlikeDataset: Judge = (exchange) => {
    const recorded = this.recorded.get(parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '');
    for (const { id, json } of recorded ? orderedItems(exchange) : []) {
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
      // What it shows from now on is held against what it showed before.
      recorded!.delete(id);
    }
    return undefined;
  };

  hasRecorded(exchange: Exchange): boolean {
    const tenantId = parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '';
    return (this.recorded.get(tenantId)?.size ?? 0) > 0 && orderedItems(exchange).length > 0;
  }

  /** One screening keeps its id, and no two share one (2.3-id-stable). */
  readonly idMoved: Judge = (exchange) => {
    const before = this.shown.get(parseQuery(exchange.request.url)?.tenantId.toLowerCase() ?? '');
    const here = new Map<bigint, Shown>();
    for (const item of orderedItems(exchange)) {
      const other = before?.get(item.id) ?? here.get(item.id);
      if (other && !sameInstant(other.at, item.at)) {
        return differs(
          `id ${item.id} for one screening only, the one at ${other.testTime}`,
          `${sayItem(item)}: another screening, or another id than before`,
        );
      }
      here.set(item.id, { at: item.at, testTime: item.testTime! });
    }
    return undefined;
  };
}

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
