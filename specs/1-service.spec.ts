/**
 * Section 1: the API only reads. What would write on a service that is broken is sent only where it can do no harm:
 * without a body, to an id that can't exist, to an unknown tenant; to a collection only where it is the
 * scratch tenant's.
 */
import { about, test } from '../fixtures/test.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import type { PageQuery } from '../engine/client/page.ts';
import { compareInstants, instant } from '../engine/data/instant.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { differs, type MismatchWithEvidence } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { generatorOf, shuffled, streamOf } from '../engine/run/state/cover.ts';
import { NOBODY } from '../engine/run/rules/raw-request.ts';
import { read, whatChanged, type Reading } from '../engine/run/walk/reading.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import type { ClientName } from '../engine/target/target.ts';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
const CENTURY_END = '2100-01-01T00:00:00Z';
/** Ids are integers. */
const NO_ID = 'no-such-screening';

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
    // A failing server is reported under 7.2-no-unprovoked-5xx.
    (answer) =>
      answer.status >= 400 || answer.status === 0 ? undefined : differs('a 4xx or 501', sayRefusal(answer)),
    method,
  );
}

/** A window without screenings: writes to it must not show anywhere. */
async function writeHarmlessly(kit: Kit): Promise<void> {
  const own = kit.request(await kit.tenantOf(), '', { kind: 'none' }).url;
  const nobodys = kit.request(NOBODY, '', { kind: 'none' }).url;
  for (const method of METHODS) {
    await write(kit, method, nobodys, 'primary');
    await write(kit, method, `${own}/${NO_ID}`, 'primary');
  }
}

async function onPrimary(kit: Kit): Promise<void> {
  const { window } = await sampleDataOf(kit);
  // A created screening appears today, wherever the other data lies.
  const to = compareInstants(instant(window.to), instant(CENTURY_END)) > 0 ? window.to : CENTURY_END;
  const query = { from: window.from, to };
  const still = (await kit.oracle()).authoritative;
  const before = await read(kit, query);
  await writeHarmlessly(kit);
  const after = await read(kit, query);
  let asked = 0;
  await kit.checkAll(
    '1-read-only',
    'primary',
    async () => {
      if (asked++ === 0) return whatChanged(before, after);
      return still
        ? whatChanged(before, await read(kit, query))
        : changedByWriting(kit, query, before, `write periods ${asked}`);
    },
    { needsAgain: true },
  );
}

/** Whether each period writes; they come in random order, so that arrivals match it once in 18,564 orders at most. */
const PERIODS = [...Array<boolean>(6).fill(true), ...Array<boolean>(12).fill(false)];

/** A live tenant changes by itself: a change is attributed to the methods if every period with them shows one, and none without. */
async function changedByWriting(
  kit: Kit,
  query: PageQuery,
  first: Reading,
  name: string,
): Promise<MismatchWithEvidence | undefined> {
  let before = await read(kit, query);
  // A tenant that was emptied does not change again.
  if (before.items.length === 0) return whatChanged(first, before);
  let periodMs = 0;
  let seen: MismatchWithEvidence | undefined;
  for (const writes of [true, ...shuffled(PERIODS, generatorOf(streamOf(kit.options.seed, name)))]) {
    const began = kit.clock.now();
    if (writes) await writeHarmlessly(kit);
    else await kit.clock.sleep(periodMs);
    periodMs = Math.max(periodMs, kit.clock.now() - began);
    const after = await read(kit, query);
    const changed = whatChanged(before, after);
    if ((changed !== undefined) !== writes) return undefined;
    seen ??= changed;
    before = after;
  }
  return seen;
}

// -- the scratch tenant --------------------------------------------------------------------------

/** Whatever is stored for a law comes after it. */
const OWN_YEAR: PageQuery = { from: '1970-01-01T00:00:00Z', to: '1971-01-01T00:00:00Z' };
const ANY_TIME: PageQuery = { from: '1970-01-01T00:00:00Z', to: CENTURY_END };

interface Made {
  readonly id: bigint;
  readonly testTime: string;
}

/** A screening that only this run knows: its instant and its id are made of the clock. */
function ownScreening(): Made {
  const now = Date.now();
  return {
    id: 800_000_000n + BigInt(now % 100_000_000),
    testTime: `1970-06-02T03:04:05.${String(now % 1_000_000).padStart(6, '0')}Z`,
  };
}

const lineOf = (tenantId: string, { id, testTime }: Made): string =>
  `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}"}`;

async function onScratch(kit: Kit): Promise<void> {
  const tenantId = await kit.tenantOf('scratch');
  const collection = kit.request(tenantId, '', { kind: 'none' }).url;
  const posted = ownScreening();
  const query = kit.target.ingest ? OWN_YEAR : ANY_TIME;
  // An empty collection would not show that it was emptied.
  const kept = { id: 700_000_001n, testTime: '1970-06-01T00:00:00Z' };
  await kit.target.ingest?.([lineOf(tenantId, kept)]).catch(() => {});
  const [first] = (await read(kit, query, 'scratch')).items;
  const item = `${collection}/${first?.id ?? NO_ID}`;
  const body = lineOf(tenantId, posted);
  const isOurs = ({ id, testTime }: { id: bigint; testTime?: string | undefined }): boolean =>
    id === posted.id || testTime === posted.testTime;
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
    const before = await read(kit, query, 'scratch');
    await write(kit, method, url, 'scratch', text);
    await kit.checkAll('1-read-only', `scratch ${method}`, async () =>
      whatChanged(before, await read(kit, query, 'scratch'), isOurs),
    );
  }
}

test(
  'POST, PUT, PATCH and DELETE change nothing, on paths where they can do no harm',
  about(['1-read-only', '1-read-only-refused']),
  ({ kit }) => onPrimary(kit),
);

test(
  'POST, PUT, PATCH and DELETE change nothing, on the scratch tenant',
  about(['1-read-only', '1-read-only-refused'], { needs: 'page', access: 'scratch', isSupplement: true }),
  async ({ kit }) => {
    if (kit.target.clients.scratch) await onScratch(kit);
  },
);
