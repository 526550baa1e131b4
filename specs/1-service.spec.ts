/**
 * Section 1: the API is read-only. Methods that could write on a broken server are sent only where they can do no
 * harm: without a body, to an id that cannot exist, to an unknown tenant, and with a body only to the scratch tenant.
 */
import { about, test } from '../fixtures/test.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { isObject, jsonText, type Json } from '../engine/client/json.ts';
import type { PageQuery } from '../engine/client/page.ts';
import { compareInstants, instant } from '../engine/data/instant.ts';
import { isClientError, sayRefusal } from '../engine/checks/errors.ts';
import { differs } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { EMPTY_WINDOW, overriding, UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
import {
  changedByWriting,
  isAsRecorded,
  isItsTime,
  takeSnapshot,
  whatChanged,
} from '../engine/run/walk/snapshot.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import type { ClientName } from '../engine/target/target.ts';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
const CENTURY_END = '2100-01-01T00:00:00Z';
/** Not an integer, so no screening has this id. */
const NO_ID = 'no-such-screening';

/** Sends a request that must be rejected (1-read-only-refused). Whether it changed anything, the caller reads from a page. */
async function sendWrite(
  kit: Kit,
  method: string,
  url: string,
  client: ClientName,
  body?: string,
  further: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { headers, ...request } = kit.requestTo(url, client);
  const out: RequestOut = {
    ...request,
    method,
    offPath: true,
    headers: {
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...further,
    },
    ...(body === undefined ? {} : { body }),
  };
  const exchange = await kit.send(out);
  kit.check(
    '1-read-only-refused',
    exchange,
    (answer) =>
      isClientError(answer) || [0, 501].includes(answer.status)
        ? undefined
        : differs('a 4xx or 501', sayRefusal(answer)),
    method,
  );
}

/** Sends every writing method to addresses that hold no screening, without a body. */
async function sendHarmlessWrites(kit: Kit): Promise<void> {
  const own = kit.request(await kit.tenantOf(), '', { kind: 'none' }).url;
  const ofUnknownTenant = kit.request(UNKNOWN_TENANT, '', { kind: 'none' }).url;
  for (const method of METHODS) {
    await sendWrite(kit, method, ofUnknownTenant, 'primary');
    await sendWrite(kit, method, `${own}/${NO_ID}`, 'primary');
  }
}

// -- the scratch tenant --------------------------------------------------------------------------

/** All screenings that the properties store are later than this year. */
const OWN_YEAR: PageQuery = { from: '1970-01-01T00:00:00Z', to: '1971-01-01T00:00:00Z' };
const ANY_TIME: PageQuery = { from: '1970-01-01T00:00:00Z', to: CENTURY_END };

interface PostedScreening {
  readonly id: bigint;
  readonly testTime: string;
}

/** A screening unique to this run: its id and testTime are derived from the clock. */
function ownScreening(): PostedScreening {
  const now = Date.now();
  return {
    id: 800_000_000n + BigInt(now % 100_000_000),
    testTime: `1970-06-02T03:04:05.${String(now % 1_000_000).padStart(6, '0')}Z`,
  };
}

/** The JSON text of a screening with the members of another one, if there is one, apart from those given. */
const withMembers = (other: Json | undefined, own: PostedScreening & { readonly tenantId: string }): string =>
  jsonText({ ...(isObject(other) ? other : {}), ...own });

test(
  'POST, PUT, PATCH and DELETE change nothing, on paths where they can do no harm',
  about(['1-read-only', '1-read-only-refused']),
  async ({ kit }) => {
    const { window } = await sampleDataOf(kit);
    // A screening created by the write would appear today, wherever the other data lies.
    const to = compareInstants(instant(window.to), instant(CENTURY_END)) > 0 ? window.to : CENTURY_END;
    const query = { from: window.from, to };
    const before = await takeSnapshot(kit, query);
    await sendHarmlessWrites(kit);
    const after = await takeSnapshot(kit, query);
    let asked = 0;
    await kit.checkAll({ id: '1-read-only', cause: 'primary', needsAgain: true }, async () => {
      if (asked++ === 0) return whatChanged(before, after);
      const { dataset, window } = kit.target;
      // Screenings may arrive outside a named window, or after the dataset was exported.
      const isStill = (await kit.oracle()).authoritative && !window;
      const changed =
        isStill && whatChanged(before, await takeSnapshot(kit, query), isAsRecorded(dataset ?? []));
      return (
        changed ||
        changedByWriting(kit, query, before, `write periods ${asked}`, () => sendHarmlessWrites(kit))
      );
    });
  },
);

test(
  'POST, PUT, PATCH and DELETE change nothing, on the scratch tenant',
  about(['1-read-only', '1-read-only-refused'], { needs: 'page', access: 'scratch', isSupplement: true }),
  async ({ kit }) => {
    if (!kit.target.clients.scratch) return;
    const tenantId = await kit.tenantOf('scratch');
    const collection = kit.request(tenantId, '', { kind: 'none' }).url;
    const posted = ownScreening();
    const query = kit.target.ingest ? OWN_YEAR : ANY_TIME;
    const firstOf = async () => (await takeSnapshot(kit, query, 'scratch')).items[0];
    let first = await firstOf();
    if (!first && kit.target.ingest) {
      // A collection that is already empty cannot show that DELETE emptied it.
      const kept = { id: 700_000_001n, testTime: '1970-06-01T00:00:00Z' };
      await kit.target.ingest([withMembers(undefined, { ...kept, tenantId })]).catch(() => {});
      first = await firstOf();
    }
    const item = `${collection}/${first?.id ?? NO_ID}`;
    // Complete, because a server may validate what it stores.
    const body = withMembers(first?.json, { ...posted, tenantId });
    const patch = JSON.stringify({ testTime: posted.testTime });
    const isOurs = ({ id, testTime }: { id: bigint; testTime?: string | undefined }): boolean =>
      id === posted.id || testTime === posted.testTime;
    const removal = overriding('DELETE');
    const steps: [method: string, url: string, body?: string, headers?: Record<string, string>][] = [
      // A page shows that the server takes any method for GET.
      ['POST', kit.request(tenantId, EMPTY_WINDOW, { kind: 'none' }).url, body],
      ['POST', collection, `[${body}]`],
      ['PUT', `${collection}/${posted.id}`, body],
      ['PUT', item, withMembers(first?.json, { ...posted, tenantId, id: first?.id ?? posted.id })],
      ['PATCH', item, patch],
      ['PATCH', item, patch, { 'content-type': 'application/merge-patch+json' }],
      ['PATCH', collection, body],
      ['PUT', collection, `[${body}]`],
      ['POST', item, removal.body, removal.headers],
      ['DELETE', item],
      ['DELETE', collection],
      // Some servers require a window, and delete what it selects.
      ['DELETE', kit.request(tenantId, query, { kind: 'none' }).url],
    ];
    let latest = await takeSnapshot(kit, query, 'scratch');
    for (const [method, url, text, headers] of steps) {
      const before = latest;
      await sendWrite(kit, method, url, 'scratch', text, headers);
      // Twice: a replica may show what was just stored later than another one.
      await kit.checkAll({ id: '1-read-only', cause: `scratch ${method}`, needsAgain: true }, async () => {
        latest = await takeSnapshot(kit, query, 'scratch');
        return whatChanged(before, latest, isItsTime, isOurs);
      });
    }
  },
);
