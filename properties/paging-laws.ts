/**
 * Laws of keyset pagination. Each function returns what does not hold, in words, or undefined. They do not depend on
 * HTTP: only `fetchPage` does.
 */
import { isAmong, returnedAs, sayItem } from '../engine/checks/page.ts';
import type { PageQuery } from '../engine/client/page.ts';
import { compareKeys, type Key } from '../engine/data/oracle.ts';

/** What is compared: an item of a page or of the known data. */
export type Entry = Key & { readonly testTime: string | undefined };

interface Page {
  readonly items: readonly Entry[];
  /** The argument of `fetchPage` for the next page; absent on the last page. */
  readonly next?: string | undefined;
}

/** Fetches the first page of a query, or the page that `next` names. */
export type FetchPage = (ask: PageQuery | { readonly next: string }) => Promise<Page>;

interface Walked {
  readonly pages: readonly Page[];
  readonly items: readonly Entry[];
}

const PAGES_AT_MOST = 2_000;
/** Maximum number of empty pages in a row whose next repeats: pages cut by time may contain no item yet. */
const EMPTY_REPEATS = 10;

/** Follows `next` to the last page, or until a `next` repeats. */
export async function walkPages(
  fetchPage: FetchPage,
  query: PageQuery,
  between: (pages: number) => Promise<void> = async () => {},
): Promise<Walked> {
  const pages = [await fetchPage(query)];
  const seen = new Set<string>();
  let again = 0;
  for (let { next } = pages[0]!; next !== undefined && pages.length < PAGES_AT_MOST;) {
    again = pages.at(-1)!.items.length === 0 ? again + 1 : 0;
    if (seen.has(next) && (again === 0 || again > EMPTY_REPEATS)) break;
    seen.add(next);
    await between(pages.length);
    const page: Page = await fetchPage({ next });
    pages.push(page);
    next = page.next;
  }
  return { pages, items: pages.flatMap(({ items }) => items) };
}

/** Checks that each item occurs once, in order; this must hold for any data. */
function onceAndInOrder({ pages }: Walked): string | undefined {
  const before: Entry[] = [];
  for (const [index, { items }] of pages.entries()) {
    for (const item of items) {
      const last = before.at(-1);
      if (last !== undefined && compareKeys(last, item) >= 0) {
        return before.some((seen) => compareKeys(seen, item) === 0)
          ? `page ${index + 1} repeats ${sayItem(item)}`
          : `page ${index + 1} has ${sayItem(item)} after ${sayItem(last)}`;
      }
      before.push(item);
    }
  }
  return undefined;
}

/** Checks that the items equal the expected ones, in order. */
export function exactly(items: readonly Entry[], expected: readonly Entry[]): string | undefined {
  for (let i = 0; i < Math.max(items.length, expected.length); i++) {
    const [got, want] = [items[i], expected[i]];
    if (got !== undefined && want !== undefined && compareKeys(got, want) === 0) continue;
    const missing = want !== undefined && !items.some((item) => compareKeys(item, want) === 0);
    const instead = missing ? returnedAs(want, items, isAmong(expected)) : undefined;
    if (instead) return instead;
    if (missing)
      return `${sayItem(want)} is missing${i > 0 ? ` after ${sayItem(expected[i - 1]!)}` : ' at the beginning'}`;
    return got === undefined
      ? `${sayItem(want!)} is missing at the end`
      : `${sayItem(got)} is not expected at position ${i + 1}`;
  }
  return undefined;
}

/** Checks a walk against the items that are known to be stored. */
export async function walkIsExact(
  fetchPage: FetchPage,
  query: PageQuery,
  expected: readonly Entry[],
): Promise<string | undefined> {
  const walked = await walkPages(fetchPage, query);
  return onceAndInOrder(walked) ?? exactly(walked.items, expected);
}

/** Checks that other queries return together what one returns: with another page size or spelling, or its parts. */
export async function sameItems(
  fetchPage: FetchPage,
  query: PageQuery,
  ...others: readonly PageQuery[]
): Promise<string | undefined> {
  const { items } = await walkPages(fetchPage, query);
  const pieces: Entry[] = [];
  for (const other of others) pieces.push(...(await walkPages(fetchPage, other)).items);
  return exactly(pieces, items);
}

/** Checks that a traversal that begins after any item of another returns the rest of it. */
export async function resumingReturnsRest(
  fetchPage: FetchPage,
  query: PageQuery,
  resumeAt: (item: Entry) => PageQuery,
  place: number,
): Promise<string | undefined> {
  const { items } = await walkPages(fetchPage, query);
  if (items.length === 0) return undefined;
  const index = place % items.length;
  const rest = await walkPages(fetchPage, resumeAt(items[index]!));
  return exactly(rest.items, items.slice(index + 1));
}

/** Checks that concurrent traversals return what each returns alone. */
export async function concurrentlyAsAlone(
  fetchPage: FetchPage,
  queries: readonly PageQuery[],
): Promise<string | undefined> {
  const together = await Promise.all(queries.map((query) => walkPages(fetchPage, query)));
  for (const [index, query] of queries.entries()) {
    const alone = await walkPages(fetchPage, query);
    const wrong = exactly(together[index]!.items, alone.items);
    if (wrong) return `traversal ${index + 1} of ${queries.length} at the same time: ${wrong}`;
  }
  return undefined;
}

/** Checks that a traversal returns what was stored before it once and in order, while more data arrives. */
export async function returnsStoredOnce(
  fetchPage: FetchPage,
  query: PageQuery,
  before: readonly Entry[],
  store: (page: number) => Promise<void>,
): Promise<string | undefined> {
  const walked = await walkPages(fetchPage, query, store);
  const old = walked.items.filter((item) => before.some((known) => compareKeys(known, item) === 0));
  return onceAndInOrder(walked) ?? exactly(old, before);
}
