/**
 * Section 1: the API only reads. What would write on a service that is broken is sent only where it can do no harm:
 * without a body, to an id that can't exist, to a tenant that nobody has; to a collection only where it is the
 * scratch tenant's.
 */
import type { Exchange, RequestOut } from '../fixtures/client/exchange.ts';
import { canonical } from '../fixtures/client/json.ts';
import { isOrdered, pageOf, type OrderedItem } from '../fixtures/client/page.ts';
import { sayRefusal } from '../fixtures/checks/errors.ts';
import { differs, type MismatchWithEvidence } from '../fixtures/checks/mismatch.ts';
import { sayItem } from '../fixtures/checks/page.ts';
import type { Kit } from '../fixtures/run/kit.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { NOBODY } from '../fixtures/run/raw-request.ts';
import { sampleDataOf, windowOf } from '../fixtures/run/survey.ts';
import type { ClientName } from '../fixtures/target/target.ts';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** Ids are integers. */
const NO_ID = 'no-such-screening';
/** Whatever is stored for a law comes behind it. */
const OWN_YEAR = { from: '1970-01-01T00:00:00Z', to: '1971-01-01T00:00:00Z', pageSize: 1000 };
const ANY_TIME = { ...OWN_YEAR, to: '2100-01-01T00:00:00Z' };

/** Sends what must be refused (1-read-only-refused); what it did is for a page to show. */
async function write(
  kit: Kit,
  method: string,
  url: string,
  client: ClientName,
  body?: string,
): Promise<void> {
  const { headers, ...request } = kit.request('', '', { kind: 'client', client });
  const out: RequestOut = {
    ...request,
    method,
    url,
    offPath: true,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body }),
  };
  const exchange = await kit.send(out);
  kit.check(
    '1-read-only-refused',
    exchange,
    // What a server fails at is told by 7.2-no-unprovoked-5xx.
    (answer) =>
      answer.status >= 400 || answer.status === 0 ? undefined : differs('a 4xx or 501', sayRefusal(answer)),
    method,
  );
}

const itemsOf = (exchange: Exchange): OrderedItem[] => (pageOf(exchange).items ?? []).filter(isOrdered);

/** A screening that was there before and is gone or altered, or one that `isOurs` says we made. */
function changed(
  before: Exchange,
  after: Exchange,
  isOurs: (item: OrderedItem) => boolean,
): MismatchWithEvidence | undefined {
  const now = new Map(itemsOf(after).map((item) => [item.id, item]));
  const last = itemsOf(after).at(-1);
  for (const item of itemsOf(before)) {
    const same = now.get(item.id);
    if (!same && last && pageOf(after).nextUrl !== undefined && item.at.seconds >= last.at.seconds) continue;
    if (!same || canonical(same.json) !== canonical(item.json)) {
      const received = same
        ? `${sayItem(same)} with other values`
        : `${itemsOf(after).length} items without it`;
      return { ...differs(`${sayItem(item)} as before the writing methods`, received), exchange: after };
    }
  }
  const held = new Set(itemsOf(before).map(({ id }) => id));
  const made = itemsOf(after).find((item) => !held.has(item.id) && isOurs(item));
  return made && { ...differs('no screening that was not there before', sayItem(made)), exchange: after };
}

/** Reads, writes, and reads again; asked again, it reads once more. */
async function readWriteRead(
  kit: Kit,
  cause: string,
  read: () => Promise<readonly Exchange[]>,
  writes: () => Promise<void>,
  isOurs: (item: OrderedItem) => boolean = () => false,
): Promise<void> {
  const before = await read();
  await writes();
  await kit.checkAll('1-read-only', cause, async () => {
    const after = await read();
    return before
      .map((page, index) => changed(page, after[index]!, isOurs))
      .find((mismatch) => mismatch !== undefined);
  });
}

async function harmless(kit: Kit): Promise<void> {
  const { densestSlice, window } = await sampleDataOf(kit);
  const own = kit.request(await kit.tenantOf(), '', { kind: 'none' }).url;
  const nobodys = kit.request(NOBODY, '', { kind: 'none' }).url;
  await readWriteRead(
    kit,
    'primary',
    async () => [
      await kit.page({ ...windowOf(densestSlice), pageSize: 1000 }),
      await kit.page({ from: window.from, to: window.to }),
    ],
    async () => {
      for (const method of METHODS) {
        await write(kit, method, nobodys, 'primary');
        await write(kit, method, `${own}/${NO_ID}`, 'primary');
      }
    },
  );
}

/** A screening that only this run knows: its instant and its id are made of the clock. */
function ownScreening(tenantId: string): { id: bigint; testTime: string; line: string } {
  const now = Date.now();
  const id = 800_000_000n + BigInt(now % 100_000_000);
  const testTime = `1970-06-02T03:04:05.${String(now % 1_000_000).padStart(6, '0')}Z`;
  return { id, testTime, line: JSON.stringify({ id: Number(id), tenantId, testTime }) };
}

async function scratched(kit: Kit): Promise<void> {
  const tenantId = await kit.tenantOf('scratch');
  const collection = kit.request(tenantId, '', { kind: 'none' }).url;
  const kept = { ...ownScreening(tenantId), id: 700_000_001n };
  const posted = ownScreening(tenantId);
  const read = async (): Promise<Exchange[]> => [
    await kit.page(kit.target.ingest ? OWN_YEAR : ANY_TIME, { client: 'scratch' }),
  ];
  // An empty collection would not show that it was emptied.
  await kit.target
    .ingest?.([`{"id":${kept.id},"tenantId":"${tenantId}","testTime":"1970-06-01T00:00:00Z"}`])
    .catch(() => {});
  const [first] = itemsOf((await read())[0]!);
  const item = `${collection}/${first?.id ?? NO_ID}`;
  const body = posted.line;
  const isOurs = ({ id, testTime }: OrderedItem): boolean => id === posted.id || testTime === posted.testTime;
  const steps: [method: string, url: string, body?: string][] = [
    ['POST', collection, body],
    ['PUT', `${collection}/${posted.id}`, body],
    ['PUT', item, body],
    ['PATCH', item, JSON.stringify({ testTime: posted.testTime })],
    ['PATCH', collection, body],
    ['DELETE', item],
    ['DELETE', collection],
  ];
  for (const [method, url, text] of steps) {
    await readWriteRead(
      kit,
      `scratch ${method}`,
      read,
      () => write(kit, method, url, 'scratch', text),
      isOurs,
    );
  }
}

export const probes: readonly Probe[] = [
  {
    ids: ['1-read-only', '1-read-only-refused'],
    name: 'methods that would write, where they can do no harm',
    precondition: 'data',
    run: harmless,
  },
  {
    ids: ['1-read-only', '1-read-only-refused'],
    name: 'methods that would write, on the scratch tenant',
    precondition: 'page',
    supplement: true,
    run: async (kit) => {
      if (kit.target.clients.scratch) await scratched(kit);
    },
  },
];
