/** What a target stores, as it serves it while nothing disturbs it; pages under load are held against it. */
import { member, integerOf, type Json } from '../../engine/client/json.ts';
import { MAX_PAGE_SIZE, pageUrl } from '../../engine/client/page.ts';
import { lowerBound } from '../../engine/data/oracle.ts';
import { instantKey } from '../k6/lib/instant.ts';
import { compareCursors, type Cursor } from '../k6/lib/judge.ts';
import type { Stretch } from '../k6/lib/record.ts';
import type { LoadClient } from '../k6/lib/config.ts';
import { askPage, mint, Unreachable } from './ask.ts';
import type { Prepared, Window } from './prepare.ts';

export interface Stored {
  /** All of it was read. */
  readonly window: Window;
  /** Of each client, in the order in which they were served. */
  readonly items: readonly (readonly Cursor[])[];
}

/** Of each tenant, so that data of any size is read in moments. */
const ITEMS_AT_MOST = 50_000;

/** Reads the beginning of the window for each client. Throws Unreachable where that is refused or can't be read. */
export async function readStored(prepared: Prepared, window: Window = prepared.base.window): Promise<Stored> {
  const read = [];
  for (const client of prepared.base.clients) read.push(await readClient(prepared, client, window));
  // Where one tenant's reading ended early, it ends for all.
  const to = read.reduce((least, { to }) => (instantKey(to)! < instantKey(least)! ? to : least), window.to);
  const end = instantKey(to)!;
  return {
    window: { from: window.from, to },
    items: read.map(({ items }) => items.filter(({ key }) => key < end)),
  };
}

async function readClient(
  { base, target, env }: Prepared,
  client: LoadClient,
  { from, to }: Window,
): Promise<{ items: readonly Cursor[]; to: string }> {
  const token = await mint(target, client.clientId, env[client.secretVariable]!);
  const items: Cursor[] = [];
  for (let after: { testTime: string; id: bigint } | undefined; ;) {
    const url = pageUrl(base.baseUrl, client.tenantId, {
      from: after?.testTime ?? from,
      to,
      pageSize: MAX_PAGE_SIZE,
      fromId: after?.id,
    });
    const page = await askPage(target, url, token);
    const read = page.items.map(placeOf);
    items.push(...read.map(({ key, id }) => ({ key, id: String(id) })));
    after = read.at(-1);
    if (!after || page.next === undefined) return { items, to };
    if (items.length >= ITEMS_AT_MOST) return { items, to: after.testTime };
  }
}

function placeOf(item: Json): { testTime: string; key: string; id: bigint } {
  const [id, testTime] = [integerOf(member(item, 'id')), member(item, 'testTime')];
  const key = typeof testTime === 'string' ? instantKey(testTime) : undefined;
  if (id === undefined || key === undefined)
    throw new Unreachable('a screening has no id or testTime that can be read');
  return { testTime: testTime as string, key, id };
}

const say = (cursor: Cursor | undefined): string => (cursor ? `item ${cursor.id}` : 'no item');

/** What is wrong with the screenings of a page, in words; undefined where it holds just what follows its beginning. */
export function wrongStretch(stretch: Stretch, stored: readonly Cursor[]): string | undefined {
  const { after, items, first, last, final } = stretch;
  const from = after ?? { key: instantKey(stretch.from) ?? '', id: '' };
  const begin = lowerBound(stored, (one) => (after ? compareCursors(one, after) > 0 : one.key >= from.key));
  const expected = stored.slice(begin, begin + items);
  const behind = after ? `after item ${after.id}` : `from ${stretch.from} on`;
  if (items === 0)
    return final && begin < stored.length
      ? `${behind} no item came, and ${stored.length - begin} are stored`
      : undefined;
  if (!first || !expected[0] || compareCursors(first, expected[0]) !== 0)
    return `${behind} ${say(first)} came first, and ${say(expected[0])} is stored there`;
  const end = expected[items - 1];
  if (!last || !end || compareCursors(last, end) !== 0)
    return `${behind} ${items} items came up to ${say(last)}, and the last of so many that are stored is ${say(end)}`;
  return final && begin + items < stored.length
    ? `after item ${last.id} no page follows, and ${stored.length - begin - items} items are stored`
    : undefined;
}

/** What was stored and is not any more, and whether anything new is. */
export function changes(before: Stored, after: Stored): { lost: readonly Cursor[]; added: boolean } {
  const spelt = ({ items }: Stored): string[] =>
    items.flatMap((of, client) => of.map(({ key, id }) => `${client} ${key} ${id}`));
  const [now, then] = [new Set(spelt(after)), new Set(spelt(before))];
  return {
    lost: before.items.flatMap((of, client) =>
      of.filter(({ key, id }) => !now.has(`${client} ${key} ${id}`)),
    ),
    added: [...now].some((one) => !then.has(one)),
  };
}
