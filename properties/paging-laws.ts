/**
 * Laws of keyset pagination over any paged API. Each function returns what does not hold, in words, or undefined.
 * They do not depend on HTTP: only `fetchPage` does.
 */

export interface PageOf<Item> {
  readonly items: readonly Item[];
  /** The argument of `fetchPage` for the next page; absent on the last page. */
  readonly next?: string | undefined;
}

/** Fetches the first page of a query, or the page that `next` names. */
export type FetchPage<Query, Item> = (ask: Query | { readonly next: string }) => Promise<PageOf<Item>>;

/** How items are compared and named. */
export interface Ordering<Item> {
  readonly compare: (a: Item, b: Item) => number;
  readonly say: (item: Item) => string;
  /** In which other form a missing item was returned: with another time, or a rounded id. Undefined if in none. */
  readonly returnedAs: (
    wanted: Item,
    items: readonly Item[],
    expected: readonly Item[],
  ) => string | undefined;
}

interface Walked<Item> {
  readonly pages: readonly PageOf<Item>[];
  readonly items: readonly Item[];
}

const PAGES_AT_MOST = 2_000;
/** Maximum number of empty pages in a row whose next repeats: pages cut by time may contain no item yet. */
const EMPTY_REPEATS = 10;

/** Follows `next` to the last page, or until a `next` repeats. */
export async function walkPages<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  query: Query,
  between: (pages: number) => Promise<void> = async () => {},
): Promise<Walked<Item>> {
  const pages = [await fetchPage(query)];
  const seen = new Set<string>();
  let again = 0;
  for (let { next } = pages[0]!; next !== undefined && pages.length < PAGES_AT_MOST;) {
    again = pages.at(-1)!.items.length === 0 ? again + 1 : 0;
    if (seen.has(next) && (again === 0 || again > EMPTY_REPEATS)) break;
    seen.add(next);
    await between(pages.length);
    const page: PageOf<Item> = await fetchPage({ next });
    pages.push(page);
    next = page.next;
  }
  return { pages, items: pages.flatMap(({ items }) => items) };
}

/** Checks that each item occurs once, in order; this must hold for any data. */
function onceAndInOrder<Item>({ pages }: Walked<Item>, { compare, say }: Ordering<Item>): string | undefined {
  const before: Item[] = [];
  for (const [index, { items }] of pages.entries()) {
    for (const item of items) {
      const last = before.at(-1);
      if (last !== undefined && compare(last, item) >= 0) {
        return before.some((seen) => compare(seen, item) === 0)
          ? `page ${index + 1} repeats ${say(item)}`
          : `page ${index + 1} has ${say(item)} after ${say(last)}`;
      }
      before.push(item);
    }
  }
  return undefined;
}

/** Checks that the items equal the expected ones, in order. */
export function exactly<Item>(
  items: readonly Item[],
  expected: readonly Item[],
  { compare, say, returnedAs }: Ordering<Item>,
): string | undefined {
  for (let i = 0; i < Math.max(items.length, expected.length); i++) {
    const [got, want] = [items[i], expected[i]];
    if (got !== undefined && want !== undefined && compare(got, want) === 0) continue;
    const missing = want !== undefined && !items.some((item) => compare(item, want) === 0);
    const instead = missing ? returnedAs(want, items, expected) : undefined;
    if (instead) return instead;
    if (missing)
      return `${say(want)} is missing${i > 0 ? ` after ${say(expected[i - 1]!)}` : ' at the beginning'}`;
    return got === undefined
      ? `${say(want!)} is missing at the end`
      : `${say(got)} is not expected at position ${i + 1}`;
  }
  return undefined;
}

/** Checks a walk against the items that are known to be stored. */
export async function walkIsExact<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  query: Query,
  expected: readonly Item[],
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const walked = await walkPages(fetchPage, query);
  return onceAndInOrder(walked, ordering) ?? exactly(walked.items, expected, ordering);
}

/** Checks that two equivalent queries return the same items: with another page size or spelling, later, or concurrently. */
export async function sameItems<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  query: Query,
  other: Query,
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const [first, second] = [await walkPages(fetchPage, query), await walkPages(fetchPage, other)];
  return exactly(second.items, first.items, ordering);
}

/** Checks that [a, b) and [b, c) together return the items of [a, c). */
export async function partsEqualWhole<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  whole: Query,
  parts: readonly Query[],
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const all = await walkPages(fetchPage, whole);
  const pieces: Item[] = [];
  for (const part of parts) pieces.push(...(await walkPages(fetchPage, part)).items);
  return exactly(pieces, all.items, ordering);
}

/** Checks that a traversal that begins after any item of another returns the rest of it. */
export async function resumingReturnsRest<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  query: Query,
  resumeAt: (item: Item) => Query,
  place: number,
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const { items } = await walkPages(fetchPage, query);
  if (items.length === 0) return undefined;
  const index = place % items.length;
  const rest = await walkPages(fetchPage, resumeAt(items[index]!));
  return exactly(rest.items, items.slice(index + 1), ordering);
}

/** Checks that concurrent traversals return what each returns alone. */
export async function concurrentlyAsAlone<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  queries: readonly Query[],
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const together = await Promise.all(queries.map((query) => walkPages(fetchPage, query)));
  for (const [index, query] of queries.entries()) {
    const alone = await walkPages(fetchPage, query);
    const wrong = exactly(together[index]!.items, alone.items, ordering);
    if (wrong) return `traversal ${index + 1} of ${queries.length} at the same time: ${wrong}`;
  }
  return undefined;
}

/** Checks that a traversal returns what was stored before it once and in order, while more data arrives. */
export async function returnsStoredOnce<Query, Item>(
  fetchPage: FetchPage<Query, Item>,
  query: Query,
  before: readonly Item[],
  store: (page: number) => Promise<void>,
  ordering: Ordering<Item>,
): Promise<string | undefined> {
  const walked = await walkPages(fetchPage, query, store);
  const old = walked.items.filter((item) => before.some((known) => ordering.compare(known, item) === 0));
  return onceAndInOrder(walked, ordering) ?? exactly(old, before, ordering);
}
