/** Traversal along `next` to its end (section 4.2 rule 5), and the requirements for a whole walk. */
import type { Exchange } from '../../client/exchange.ts';
import { goesOn, parseQuery, isOrdered, orderedItems, pageOf } from '../../client/page.ts';
import type { Page, PageQuery, OrderedItem } from '../../client/page.ts';
import { instant, isInside, sameInstant } from '../../data/instant.ts';
import { compareKeys, type OracleItem } from '../../data/oracle.ts';
import type { ClientName } from '../../target/target.ts';
import { differs, type Mismatch } from '../../checks/mismatch.ts';
import type { Kit, PageOptions } from '../kit.ts';
import { stillThere } from '../state/context.ts';
import { sayRefusal } from '../../checks/errors.ts';
import { isTrusted } from '../../checks/next.ts';
import { pictureOfWalk } from '../../checks/walk-picture.ts';
import { firstDescent, isAmong, isInWindow, returnedAs, sayItem } from '../../checks/page.ts';
import { PreconditionFailed } from '../../errors.ts';

/** complete: the last page has no `next`. stuck: its `next` leads nowhere, or is refused. cut: a limit was reached. */
type WalkEnd = 'complete' | 'stuck' | 'cut';

export interface Walk {
  readonly query: PageQuery;
  readonly exchanges: readonly Exchange[];
  /** All items that can be ordered, in the order of arrival; read again from the pages. */
  readonly items: readonly OrderedItem[];
  readonly summary: WalkSummary;
  readonly end: WalkEnd;
  /** Why it is stuck. */
  readonly why?: string;
}

interface WalkOptions extends PageOptions {
  readonly maxPages?: number;
  /** The walk ends after this many screenings. */
  readonly enough?: number;
  /** The number of known screenings in the window: a traversal that returns far more never ends. */
  readonly known?: number;
  /** Repeats a traversal whose end was not reached: only `maxPages` limits it. */
  readonly isAgain?: boolean;
  /** Called before each `next` is followed, with the number of pages so far. */
  readonly between?: ((pages: number) => Promise<void>) | undefined;
}

/** Limits of a traversal without its own limit. */
const PAGES_AT_MOST = 1_000;
const ITEMS_AT_MOST = 100_000;
/** The limit after one traversal reached the others: a target whose `next` never ends shows nothing more. */
const PAGES_AFTER_ENDLESS = 5;

/** Empty pages in a row after which a walk counts as endless; servers that scan time in slices send many. */
const EMPTY_IN_A_ROW = 200;
/** Maximum number of empty pages in a row whose next repeats: pages cut by time may contain no item yet. */
const EMPTY_REPEATS = 10;

/** Far more than can arrive during a traversal. */
const endlessFrom = (known: number): number => 2 * known + 50;

/** Walks a window. Throws PreconditionFailed if the first page fails. */
export async function walk(kit: Kit, query: PageQuery, options: WalkOptions = {}): Promise<Walk> {
  const first = await kit.page(query, options);
  return walkOn(kit, query, first, options);
}

/** Walks on from an answered first page. Throws Untested if a connection breaks. */
export async function walkOn(
  kit: Kit,
  query: PageQuery,
  first: Exchange,
  options: WalkOptions = {},
): Promise<Walk> {
  const { client = 'primary', maxPages = Infinity, enough = Infinity, known = Infinity, isAgain } = options;
  const { knowledge, ledger } = kit;
  const exchanges = [first];
  const urls = new Set([first.request.url]);
  const summary = new WalkSummary();
  summary.add(first);
  let empty = 0;
  const ended = (end: WalkEnd, why?: string): Walk => {
    ledger.raiseTo('longestWalkPages', exchanges.length);
    knowledge.noteWalk(summary.count);
    return {
      query,
      exchanges,
      get items() {
        return exchanges.flatMap(orderedItems);
      },
      summary,
      end,
      ...(why === undefined ? {} : { why }),
    };
  };
  /** Why the `next` of the latest page is not followed; undefined if it is. */
  const whyStuck = ({ items, nextUrl }: Page): string | undefined => {
    if (!nextUrl) return 'next is no URL';
    if (!isTrusted(nextUrl, kit.target)) return `next leads to ${new URL(nextUrl).origin}`;
    empty = items?.length ? 0 : empty + 1;
    const isSame = nextUrl === exchanges.at(-1)!.request.url && empty > 0 && empty <= EMPTY_REPEATS;
    if (urls.has(nextUrl) && !isSame) return `page ${exchanges.length} leads back to a page before it`;
    if (empty >= EMPTY_IN_A_ROW) return `${empty} empty pages in a row, each with next`;
    if (summary.count <= endlessFrom(known)) return undefined;
    knowledge.endless = true;
    return `${summary.count} items and next, where ${known} screenings are known`;
  };
  const isCut = (): boolean => {
    // A walk with its own limit may be long without being endless.
    const isLong = exchanges.length >= PAGES_AT_MOST || summary.count >= ITEMS_AT_MOST;
    if (!isAgain && maxPages === Infinity && isLong) knowledge.endless = true;
    const most = isAgain ? Infinity : knowledge.endless ? PAGES_AFTER_ENDLESS : PAGES_AT_MOST;
    return exchanges.length >= Math.min(maxPages, most) || summary.ids.size >= enough;
  };
  for (;;) {
    const page = pageOf(exchanges.at(-1)!);
    if (!goesOn(page)) return ended('complete');
    const why = whyStuck(page);
    if (why !== undefined) return ended('stuck', why);
    if (isCut()) return ended('cut');
    urls.add(page.nextUrl!);
    await options.between?.(exchanges.length);
    const exchange = await kit.follow(page.nextUrl!, client);
    if (exchange.transportError)
      throw new PreconditionFailed(`a walk broke off: ${exchange.transportError.message}`);
    if (exchange.status !== 200)
      return ended('stuck', `page ${exchanges.length + 1} was answered ${sayRefusal(exchange)}`);
    // The ties of the scratch tenant are not those of the data.
    if (client !== 'scratch') noteBoundary(kit, exchanges.at(-1)!, exchange);
    exchanges.push(exchange);
    const repeated = summary.add(exchange);
    if (repeated) return ended('stuck', `page ${exchanges.length} repeats ${sayItem(repeated)}`);
  }
}

/** Whether a walk is stuck because it came back to what it had passed; otherwise its `next` could not be followed. */
export function cameBack({ summary, exchanges }: Walk): boolean {
  const { nextUrl } = pageOf(exchanges.at(-1)!);
  return summary.repeated !== undefined || exchanges.some(({ request }) => request.url === nextUrl);
}

/** The summary of a walk. It keeps only the ids of items, since a walk may be long. */
class WalkSummary {
  readonly ids = new Set<bigint>();
  count = 0;
  /** Whether every item can be ordered. */
  readable = true;
  /** The first repeated item, and the index of its page. */
  repeated: { readonly item: OrderedItem; readonly index: number } | undefined;
  /** Order across pages (section 4.2 rule 4); repeated items are reported under rule 5. */
  outOfOrder: Mismatch | undefined;
  private index = -1;
  /** The last item so far. */
  last: OrderedItem | undefined;
  private highest: OrderedItem | undefined;

  add(exchange: Exchange): OrderedItem | undefined {
    this.index++;
    const { items } = pageOf(exchange);
    if (!items?.every(isOrdered)) this.readable = false;
    const ordered = orderedItems(exchange);
    this.count += ordered.length;
    // After all earlier items it is another screening with a wrong id (2.3-id-stable).
    const { highest } = this;
    const again = ordered.find((item) => this.ids.has(item.id) && highest && compareKeys(item, highest) <= 0);
    for (const item of ordered) {
      if (this.ids.has(item.id)) this.repeated ??= { item, index: this.index };
      else {
        this.ids.add(item.id);
        this.outOfOrder ??= this.last && firstDescent([this.last, item]);
        this.last = item;
      }
      if (!this.highest || compareKeys(item, this.highest) > 0) this.highest = item;
    }
    return again;
  }
}

/** Counts pages that end inside a tie, where paging faults appear. */
function noteBoundary(kit: Kit, before: Exchange, after: Exchange): void {
  const last = pageOf(before).items?.at(-1);
  const first = pageOf(after).items?.[0];
  if (last?.at && first?.at && sameInstant(last.at, first.at)) kit.ledger.count('boundariesInsideTies');
}

/** The mismatch of a walk of a window whose `expected` items are known. Items outside the window break 4.2-window. */
function walkMismatch(
  walked: Walk,
  expected: readonly OracleItem[],
): (Mismatch & { exchange?: Exchange }) | undefined {
  const { count, readable, repeated } = walked.summary;
  if (repeated) {
    const { item, index } = repeated;
    return {
      ...differs('each screening once', `page ${index + 1} repeats ${sayItem(item)}`),
      exchange: walked.exchanges[Math.max(0, index - 1)]!,
      picture: pictureOfWalk(walked.exchanges),
    };
  }
  if (walked.end === 'stuck') {
    return {
      ...differs('next to lead to the end of the window', walked.why!),
      exchange: walked.exchanges.at(-1)!,
      picture: pictureOfWalk(walked.exchanges),
    };
  }
  // Items that cannot be ordered break 2.3, and may be those that seem to be missing.
  if (!readable) return undefined;
  const cut = walked.end === 'cut';
  const { passed, lost } = lostOn(walked, expected);
  if (lost.length === 0) return undefined;
  const first = lost[0]!;
  const exchange = walked.exchanges.findLast((page) =>
    orderedItems(page).some((item) => compareKeys(item, first) < 0),
  );
  const after = exchange && orderedItems(exchange).findLast((item) => compareKeys(item, first) < 0);
  const place = after ? `, which comes after item ${after.id}` : '';
  const instead = returnedAs(first, walked.items, isAmong(expected));
  const more = lost.length > 1 ? `, and ${lost.length - 1} more` : '';
  return {
    ...differs(
      `all ${passed.length} screenings ${cut ? 'as far as it went' : 'of the window'}`,
      `${count} items on ${walked.exchanges.length} pages: ${instead ?? `${sayItem(first)} is missing${place}`}${more}`,
    ),
    ...(exchange ? { exchange } : {}),
    picture: pictureOfWalk(walked.exchanges, lost),
  };
}

/** The expected items that a walk has passed (all unless it was truncated), and the missing ones among them. */
function lostOn(
  walked: Walk,
  expected: readonly OracleItem[],
): { readonly passed: readonly OracleItem[]; readonly lost: readonly OracleItem[] } {
  const { ids, last } = walked.summary;
  const passed =
    walked.end === 'cut' ? expected.filter((item) => last && compareKeys(item, last) < 0) : expected;
  return { passed, lost: passed.filter((item) => !ids.has(item.id) && !lostByFirstPage(item, walked)) };
}

/** Whether the first page, a plain query, lacks the item: this does not count against the walk. */
function lostByFirstPage(item: OracleItem, { exchanges }: Walk): boolean {
  const last = orderedItems(exchanges[0]!).at(-1);
  const parsed = parseQuery(exchanges[0]!.request.url);
  if (parsed && sameInstant(item.at, parsed.from) && parsed.fromId === undefined) {
    return !last || compareKeys(item, last) < 0;
  }
  return last !== undefined && compareKeys(item, last) < 0;
}

/** The currently known items in the window of a query. */
export async function expectedItems(
  kit: Kit,
  query: PageQuery,
  client: ClientName = 'primary',
): Promise<readonly OracleItem[]> {
  const known = await kit.oracle(client);
  const parsed = { tenantId: '', from: instant(query.from), to: instant(query.to) };
  return known
    .within({ from: parsed.from, to: parsed.to, afterId: query.fromId })
    .filter((item) => isInWindow(item.at, parsed, known));
}

/** The most pages of the largest size in which the screenings of a window are counted again. */
const COUNTED_PAGES = 100;

/** Without a dataset: how many screenings a window holds now; undefined if it goes on, as where `next` never ends. */
async function countAgain(
  kit: Kit,
  query: PageQuery,
  client: ClientName = 'primary',
): Promise<number | undefined> {
  if ((await kit.oracle(client)).authoritative) return undefined;
  const large = { ...query, pageSize: kit.knowledge.pageSize };
  const { end, items } = await walk(kit, large, { client, maxPages: COUNTED_PAGES, isAgain: true });
  if (end !== 'complete') return undefined;
  kit.knowledge.endless = false;
  const window = { from: instant(query.from), to: instant(query.to) };
  return items.filter(({ at }) => isInside(at, window)).length;
}

/** Walks a window and checks the walk by rules 4 and 5. Returns the items. */
export async function checkWalk(
  kit: Kit,
  query: PageQuery,
  options: WalkOptions & { readonly isSample?: boolean } = {},
  cause = 'walk',
): Promise<Walk> {
  let walked: Walk | undefined;
  const expected = [...(await expectedItems(kit, query, options.client))];
  let known = options.isSample ? expected.length : Infinity;
  await kit.checkAll({ id: '4.2-r5-exactly-once', cause }, async () => {
    // An import may have stored many meanwhile.
    if (walked && walked.summary.count > endlessFrom(known))
      known = (await countAgain(kit, query, options.client)) ?? known;
    walked = await walk(kit, query, { ...options, known, isAgain: walked?.end === 'stuck' });
    const mismatch = walkMismatch(walked, expected);
    if (!mismatch) return undefined;
    const { lost } = lostOn(walked, expected);
    const left = new Set((await stillThere(kit, walked.exchanges.at(-1)!, lost)).map(({ id }) => id));
    return walkMismatch(
      walked,
      expected.filter((item) => !lost.includes(item) || left.has(item.id)),
    );
  });
  const first = walked!;
  await kit.checkAll({ id: '4.2-r4-order', cause: 'walk' }, async () => {
    const mismatch = first.summary.outOfOrder;
    return (
      mismatch && {
        ...mismatch,
        exchange: first.exchanges[0]!,
        picture: pictureOfWalk(first.exchanges),
      }
    );
  });
  return first;
}
