/** Section 4.2, rule 3: tenants are never mixed. */
import { about, test } from '../fixtures/test.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { canonical, isObject } from '../engine/client/json.ts';
import { orderedItems, type OrderedItem, type PageQuery } from '../engine/client/page.ts';
import { formatInstant, instant, isMovable, shift } from '../engine/data/instant.ts';
import { FORBIDDEN, notServed, refused } from '../engine/checks/errors.ts';
import { differs } from '../engine/checks/mismatch.ts';
import { onlyOf } from '../engine/checks/selection.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import type { Kit } from '../engine/run/kit.ts';
import { sampleDataOf, WIDE_WINDOWS, windowOf } from '../engine/run/walk/survey.ts';
import { checkWalk, walk, type Walk } from '../engine/run/walk/walk.ts';
import { CONCURRENT_ROUNDS } from '../engine/run/rules/raw-request.ts';
import { Untested } from '../engine/errors.ts';

/** Ten pages of this size show enough of the second tenant. */
const LEAST_PAGE = 25;

/** Walks one window for both tenants: that of the sample, or one of the second tenant if that has none there. */
async function bothWalks(kit: Kit): Promise<[Walk, Walk]> {
  await kit.tenantOf('secondTenant');
  const sample = await sampleDataOf(kit);
  const walks = await walksOf(kit, sample.window, sample.items.length);
  if (walks[1].items.length > 0) return walks;
  // The screenings of the tenants may be of different years.
  const [[from, to]] = WIDE_WINDOWS;
  const page = await kit.page({ from, to, pageSize: 50 }, { client: 'secondTenant' });
  const items = orderedItems(page).filter(({ at }) => isMovable(at));
  return items.length > 0 ? walksOf(kit, windowOf(items), items.length) : walks;
}

/**
 * Alternately, so that an answer cached for one tenant would show up for the other, and in two pages or more, because
 * only those after a cursor may lack the tenant.
 */
async function walksOf(kit: Kit, window: PageQuery, count: number): Promise<[Walk, Walk]> {
  const pageSize = Math.min(400, kit.knowledge.pageSize, Math.max(LEAST_PAGE, Math.ceil(count / 2)));
  const query = { ...window, pageSize };
  const primary = await checkWalk(kit, query, { maxPages: 10 }, 'concurrently with the second tenant');
  const second = await walk(kit, query, { client: 'secondTenant', maxPages: 10 });
  await kit.page(query);
  // Its first screening, by which no window of primary begins.
  const own = second.items[0]?.at;
  if (own && isMovable(own))
    await kit.page(
      { from: formatInstant(own), to: formatInstant(shift(own, 3n, 0)) },
      { client: 'secondTenant' },
    );
  await emptyFirst(kit, primary, second);
  await afterForeignTie(kit, primary, second);
  return [primary, second];
}

/** The last screening at an instant at which the other tenant has none. */
function lastAlone(walked: Walk, other: Walk): OrderedItem | undefined {
  const taken = new Set(other.items.map(({ at }) => formatInstant(at)));
  return walked.items.findLast(({ at }) => !taken.has(formatInstant(at)) && isMovable(at));
}

/** Requests an instant at which only primary has screenings: an empty answer that is cached without the tenant, or without from_id, would be served to primary. */
async function emptyFirst(kit: Kit, primary: Walk, second: Walk): Promise<void> {
  const last = lastAlone(primary, second);
  if (!last) return;
  const query = { from: formatInstant(last.at), to: formatInstant(shift(last.at, 1n, 6)), pageSize: 50 };
  await kit.ask(query, { client: 'secondTenant' });
  await kit.ask({ ...query, fromId: last.id });
  await kit.ask(query);
}

/** A cursor may select the rest of its tie by another condition than what follows, and there without the tenant. */
async function afterForeignTie(kit: Kit, primary: Walk, second: Walk): Promise<void> {
  const foreign = lastAlone(second, primary);
  if (!foreign) return;
  const query = { from: formatInstant(foreign.at), to: formatInstant(shift(foreign.at, 3n, 0)), fromId: 0n };
  const page = await kit.ask(query);
  const own = (await kit.tenantOf()).toLowerCase();
  kit.check('4.2-r3-one-tenant', page, onlyOf(own), 'a cursor at an instant of the second tenant');
}

/** Counts the screenings of `second` that equal one of `primary` in everything but `tenantId`. */
function sharedBy(primary: Walk, second: Walk): number {
  const content = ({ json }: { json: unknown }): string => {
    const fields = isObject(json as never) ? { ...(json as object) } : {};
    return canonical({ ...fields, tenantId: null } as never);
  };
  const held = new Set(primary.items.map(content));
  return second.items.filter((item) => held.has(content(item))).length;
}

/** Warns if the two tenants hold equal screenings, because then their data cannot tell the tenants apart. */
function warnOfEqualData(kit: Kit, primary: Walk, second: Walk): void {
  const shared = sharedBy(primary, second);
  if (shared === 0) return;
  kit.fail({
    id: '4.2-r3-one-tenant',
    cause: 'equal data',
    mismatch: differs(
      'data that tells the tenants apart (load each with a seed of its own)',
      `${shared} of the ${second.items.length} screenings of clients.secondTenant equal to some of primary but for tenantId`,
    ),
    exchange: second.exchanges[0]!,
    warning: true,
  });
}

test(
  'a traversal of one tenant returns no screening of the other',
  about('4.2-r3-one-tenant', { access: 'reads' }),
  async ({ kit }) => {
    const [primary, second] = await bothWalks(kit);
    if (second.items.length === 0) {
      throw new Untested('clients.secondTenant has no screenings; load some');
    }
    warnOfEqualData(kit, primary, second);
    for (const [walked, client] of [
      [primary, 'primary'],
      [second, 'secondTenant'],
    ] as const) {
      const own = (await kit.tenantOf(client)).toLowerCase();
      for (const exchange of walked.exchanges) kit.check('4.2-r3-one-tenant', exchange, onlyOf(own), client);
    }
    await checkForeignItems(kit, primary, 'primary', 'secondTenant');
    await checkForeignItems(kit, second, 'secondTenant', 'primary');
  },
);

/** Requests with the same query that are in flight together may share one answer. Exclusive, so that none is queued. */
test(
  'concurrent requests of both tenants with the same query get their own screenings',
  about(['4.2-r3-one-tenant', '5-forbidden'], { access: 'exclusive', isSupplement: true }),
  async ({ kit }) => {
    const tenants = { primary: await kit.tenantOf(), secondTenant: await kit.tenantOf('secondTenant') };
    const [[from, to]] = WIDE_WINDOWS;
    let asked = 0n;
    /** No earlier answer is for this query. */
    const newQuery = () => ({ from, to: formatInstant(shift(instant(to), --asked)), pageSize: 50 });
    await kit.checkAll({ id: '4.2-r3-one-tenant', cause: 'concurrent requests' }, async () => {
      for (let round = 0; round < CONCURRENT_ROUNDS; round++) {
        const query = newQuery();
        const answers = await mapConcurrently(Object.entries(tenants), async ([client, tenantId]) => {
          const exchange = await kit.send(kit.request(tenantId, query, client as keyof typeof tenants));
          return { exchange, mismatch: onlyOf(tenantId.toLowerCase())(exchange) };
        });
        const wrong = answers.find(({ mismatch }) => mismatch);
        if (wrong) return { ...wrong.mismatch!, exchange: wrong.exchange };
      }
      return undefined;
    });
    // A server may also coalesce concurrent requests for one URL, whatever their tokens are.
    for (let round = 0; round < CONCURRENT_ROUNDS; round++) {
      const query = newQuery();
      const [, stranger] = await mapConcurrently(['primary', 'secondTenant'] as const, (client) =>
        kit.send(kit.request(tenants.primary, query, client)),
      );
      kit.check('5-forbidden', stranger!, refused(kit, FORBIDDEN), 'while the owner sends the same request');
    }
  },
);

/** The id of a cursor need not exist, and a server must not look it up among those of others. */
test(
  "a from_id of another tenant's screening is a cursor as any other",
  about('4.2-from_id', { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const [[from, to]] = WIDE_WINDOWS;
    const [foreign] = orderedItems(await kit.page({ from, to, pageSize: 1 }, { client: 'secondTenant' }));
    if (!foreign) throw new Untested('clients.secondTenant has no screenings; load some');
    const { window } = await sampleDataOf(kit);
    await kit.page({ ...window, pageSize: 50, fromId: foreign.id }, { id: '4.2-from_id' });
  },
);

/** Only the path selects the tenant, even if another part of the request names one. Such a request may be rejected. */
test(
  'a parameter or header that names another tenant selects nothing of it',
  about(['4.2-r3-one-tenant', '5-forbidden'], { access: 'reads' }),
  async ({ kit }) => {
    const [own, other] = [await kit.tenantOf(), await kit.tenantOf('secondTenant')];
    const [[from, to]] = WIDE_WINDOWS;
    const plain = kit.request(own, { from, to, pageSize: 50 });
    const named = naming(other);
    // Frameworks behind rewriting gateways take the path from these, after its tenant was compared.
    const path = plain.url.slice(new URL(plain.url).origin.length).replace(own, other);
    const paths = { 'x-original-url': path, 'x-rewrite-url': path };
    const requests: readonly (readonly [string, RequestOut])[] = [
      ['parameters', { ...plain, url: `${plain.url}${named.parameters}` }],
      ['headers', { ...plain, headers: { ...named.headers, ...paths, ...plain.headers } }],
      ['cookies', { ...plain, headers: { cookie: named.cookie, ...plain.headers } }],
    ];
    for (const [name, request] of requests) {
      const exchange = await kit.send({ ...request, offPath: true });
      kit.check('4.2-r3-one-tenant', exchange, onlyOf(own.toLowerCase()), `named in ${name}`);
    }
    // A server may compare the tenant that the request names with the path, or with the token, instead of one with the other.
    const theirs = kit.request(other, { from, to, pageSize: 50 });
    for (const [name, tenantId] of Object.entries({ 'of the path': other, 'of the token': own })) {
      const { parameters, headers, cookie } = naming(tenantId);
      const request = { ...theirs, url: `${theirs.url}${parameters}`, offPath: true };
      kit.check(
        '5-forbidden',
        await kit.send({ ...request, headers: { ...headers, cookie, ...theirs.headers } }),
        notServed('403 forbidden'),
        `headers and parameters name the tenant ${name} as well`,
      );
    }
  },
);

/** Parameters and headers in which multi-tenant frameworks look for the tenant. */
const PARAMETERS = [
  ...['tenantId', 'tenant_id', 'tenant', 'tenants', 'organization_id'],
  ...['organizationId', 'org_id', 'orgId', 'account_id', 'accountId'],
];
const HEADERS = [
  ...['x-tenant-id', 'x-tenant', 'tenant-id', 'tenantid', 'x-organization-id'],
  ...['x-tenantid', 'x-org-id', 'x-scope-orgid', 'x-account-id'],
];

/** The places of a request that may name a tenant. */
const naming = (tenantId: string) => ({
  parameters: PARAMETERS.map((name) => `&${name}=${tenantId}`).join(''),
  headers: Object.fromEntries(HEADERS.map((name) => [name, tenantId])),
  cookie: PARAMETERS.map((name) => `${name}=${tenantId}`).join('; '),
});

/** Checks for screenings of the other tenant's dataset, whatever tenantId they carry. Needs both datasets. */
async function checkForeignItems(
  kit: Kit,
  walked: Walk,
  own: 'primary' | 'secondTenant',
  other: 'primary' | 'secondTenant',
): Promise<void> {
  const [ours, theirs] = [await kit.oracle(own), await kit.oracle(other)];
  if (!ours.authoritative || !theirs.authoritative) return;
  for (const exchange of walked.exchanges) {
    kit.check(
      '4.2-r3-one-tenant',
      exchange,
      (page) => {
        // Two tenants may use the same ids.
        const odd = orderedItems(page).find(({ id, at }) => !ours.has(id, at) && theirs.has(id, at));
        return odd
          ? differs(`only screenings of clients.${own}`, `item ${odd.id}, which clients.${other} holds`)
          : undefined;
      },
      `foreign to ${own}`,
    );
  }
}
