/** The screenings of an undisturbed target, for comparison with pages under load. */
import { isOrdered, MAX_PAGE_SIZE, pageUrl } from '../../engine/client/page.ts';
import { compareInstants, instant } from '../../engine/data/instant.ts';
import { Oracle, type Key } from '../../engine/data/oracle.ts';
import type { LoadClient } from '../k6/lib/config.ts';
import type { Window } from '../k6/lib/window.ts';
import { askPage, mint, Unreachable } from './ask.ts';
import type { Prepared } from './prepare.ts';

type Item = Key & { readonly testTime: string };

export interface Stored {
  /** The window that was read completely. */
  readonly window: Window;
  /** The screenings of each client, in the order of the pages. */
  readonly items: readonly (readonly Item[])[];
}

/** Limit per tenant, so that large datasets are read quickly. */
const MAX_ITEMS = 50_000;

/** Reads the beginning of the window for each client. Throws Unreachable if a page is rejected or invalid. */
export async function readStored(prepared: Prepared, window: Window = prepared.base.window): Promise<Stored> {
  const read = [];
  for (const client of prepared.base.clients) read.push(await readClient(prepared, client, window));
  // Cut to the shortest window that was read for a tenant.
  const to = read.reduce(
    (least, { to }) => (compareInstants(instant(to), instant(least)) < 0 ? to : least),
    window.to,
  );
  return {
    window: { from: window.from, to },
    items: read.map(({ items }) => items.filter(({ at }) => compareInstants(at, instant(to)) < 0)),
  };
}

/** An oracle for exactly these items. */
export function oracleOf(items: readonly Item[]): Oracle {
  const oracle = new Oracle(true);
  for (const item of items) oracle.add(item, 0);
  return oracle;
}

async function readClient(
  { base, target, env }: Prepared,
  client: LoadClient,
  { from, to }: Window,
): Promise<{ items: readonly Item[]; to: string }> {
  const token = await mint(target, client.clientId, env[client.secretVariable]!);
  const items: Item[] = [];
  for (let after: Item | undefined; ;) {
    const url = pageUrl(base.baseUrl, client.tenantId, {
      from: after?.testTime ?? from,
      to,
      pageSize: MAX_PAGE_SIZE,
      fromId: after?.id,
    });
    const page = await askPage(target, url, token);
    if (!page.items.every(isOrdered)) throw new Unreachable('a screening has no valid id or testTime');
    // A screening with an instant has a testTime.
    items.push(...page.items.map(({ id, at, testTime }) => ({ id, at, testTime: testTime! })));
    after = items.at(-1);
    if (page.items.length === 0 || page.next === undefined) return { items, to };
    if (items.length >= MAX_ITEMS) return { items, to: after!.testTime };
  }
}

/** Screenings that have disappeared, and whether there are new ones. */
export function changes(before: Stored, after: Stored): { lost: readonly Item[]; added: boolean } {
  const keyOf = (client: number, { at, id }: Item): string => `${client} ${at.seconds}.${at.fraction} ${id}`;
  const keysOf = ({ items }: Stored): Set<string> =>
    new Set(items.flatMap((of, client) => of.map((item) => keyOf(client, item))));
  const [now, then] = [keysOf(after), keysOf(before)];
  return {
    lost: before.items.flatMap((of, client) => of.filter((item) => !now.has(keyOf(client, item)))),
    added: [...now].some((one) => !then.has(one)),
  };
}
