/**
 * Laws of keyset pagination. Each function returns what does not hold, in words, or undefined. They do not depend on
 * HTTP: only `traverse` does.
 */
import { isAmong, returnedAs, sayItem } from '../engine/checks/page.ts';
import type { PageQuery } from '../engine/client/page.ts';
import { compareKeys, type Key } from '../engine/data/oracle.ts';

/** What is compared: an item of a page or of the known data. */
export type Entry = Key & { readonly testTime: string | undefined };

/** The pages of a window, from the first to the last or until a `next` repeats; `between`: before each further page. */
export type Traverse = (
  query: PageQuery,
  between?: (pages: number) => Promise<void>,
) => Promise<readonly (readonly Entry[])[]>;

/** Checks that each item occurs once, in order; this must hold for any data. */
function onceAndInOrder(pages: readonly (readonly Entry[])[]): string | undefined {
  const before: Entry[] = [];
  for (const [index, items] of pages.entries()) {
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
  traverse: Traverse,
  query: PageQuery,
  expected: readonly Entry[],
): Promise<string | undefined> {
  const pages = await traverse(query);
  return onceAndInOrder(pages) ?? exactly(pages.flat(), expected);
}

/** Checks that other queries return together what one returns: with another page size or spelling, or its parts. */
export async function sameItems(
  traverse: Traverse,
  query: PageQuery,
  ...others: readonly PageQuery[]
): Promise<string | undefined> {
  const items = (await traverse(query)).flat();
  const pieces: Entry[] = [];
  for (const other of others) pieces.push(...(await traverse(other)).flat());
  return exactly(pieces, items);
}

/** Checks that a traversal that begins after any item of another returns the rest of it. */
export async function resumingReturnsRest(
  traverse: Traverse,
  query: PageQuery,
  resumeAt: (item: Entry) => PageQuery,
  place: number,
): Promise<string | undefined> {
  const items = (await traverse(query)).flat();
  if (items.length === 0) return undefined;
  const index = place % items.length;
  const rest = await traverse(resumeAt(items[index]!));
  return exactly(rest.flat(), items.slice(index + 1));
}

/** Checks that concurrent traversals return what each returns alone. */
export async function concurrentlyAsAlone(
  traverse: Traverse,
  queries: readonly PageQuery[],
): Promise<string | undefined> {
  const together = await Promise.all(queries.map((query) => traverse(query)));
  for (const [index, query] of queries.entries()) {
    const alone = await traverse(query);
    const wrong = exactly(together[index]!.flat(), alone.flat());
    if (wrong) return `traversal ${index + 1} of ${queries.length} at the same time: ${wrong}`;
  }
  return undefined;
}

/** Checks that a traversal returns what was stored before it once and in order, while more data arrives. */
export async function returnsStoredOnce(
  traverse: Traverse,
  query: PageQuery,
  before: readonly Entry[],
  store: (page: number) => Promise<void>,
): Promise<string | undefined> {
  const pages = await traverse(query, store);
  const old = pages.flat().filter((item) => before.some((known) => compareKeys(known, item) === 0));
  return onceAndInOrder(pages) ?? exactly(old, before);
}
