/** Section 5: which tenant's screenings a token gives access to. */
import { about, test } from '../fixtures/test.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { readToken } from '../engine/client/token.ts';
import { formEncode } from '../engine/client/transport.ts';
import { namesTraversal, pageOf, SOME_WINDOW, type PageQuery } from '../engine/client/page.ts';
import { FORBIDDEN, NOT_FOUND, notServed, refused, sayRefusal } from '../engine/checks/errors.ts';
import type { Refusal } from '../engine/checks/errors.ts';
import { differs, type Judge, type MismatchWithEvidence } from '../engine/checks/mismatch.ts';
import { onlyOf } from '../engine/checks/selection.ts';
import { isUuid } from '../engine/data/dataset.ts';
import { formatInstant, instant, shift } from '../engine/data/instant.ts';
import { unknownIgnored } from '../engine/checks/token.ts';
import { secretVariable } from '../engine/run/evidence/evidence.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import {
  inHalves,
  isSuspicious,
  tokenRequestOf,
  UNKNOWN_TENANT,
  EMPTY_WINDOW,
} from '../engine/run/rules/raw-request.ts';
import { bearerHeader } from '../engine/run/rules/unauthenticated.ts';
import { basic, replaced } from '../engine/run/rules/wrong-credentials.ts';
import { WIDE_WINDOWS } from '../engine/run/walk/survey.ts';
import { Untested } from '../engine/errors.ts';

const [[from, to]] = WIDE_WINDOWS;
/** Has a next for every tenant with more than one screening. */
const SHORT_PAGE: PageQuery = { from, to, pageSize: 1 };

type Asker = 'primary' | 'secondTenant';

/** A later page of the client's own data, and how it may be refused on another path. */
interface LaterPage {
  readonly query: string | PageQuery;
  /** A cursor beside the documented parameters may name the tenant. */
  readonly hasCursor: boolean;
  readonly refusals: readonly Refusal[];
}

async function laterPageOf(kit: Kit, client: Asker): Promise<LaterPage> {
  const first = await kit.send(kit.request(await kit.tenantOf(client), SHORT_PAGE, client));
  const { nextUrl } = pageOf(first);
  const hasCursor = nextUrl !== undefined && namesTraversal(nextUrl);
  return {
    query: nextUrl === undefined ? { ...SHORT_PAGE, fromId: 1n } : new URL(nextUrl).search,
    hasCursor,
    // On another path the cursor is wrong too, and either mistake may be named.
    refusals: hasCursor ? [FORBIDDEN, [400, 'invalid_request']] : [FORBIDDEN],
  };
}

/** `asked` gives each call a URL of its own. */
async function ownerAfterStranger(
  kit: Kit,
  tenantId: string,
  asked: bigint,
): Promise<MismatchWithEvidence | undefined> {
  const query = { ...SHORT_PAGE, to: formatInstant(shift(instant(to), -asked)) };
  const { status } = await kit.send(kit.request(tenantId, query, 'primary'));
  const exchange = await kit.send(kit.request(tenantId, query, 'secondTenant'));
  if (status !== 403 || exchange.status !== 403) return undefined;
  const said = sayRefusal(exchange, kit.target.errorCodePointer);
  return { ...differs('200 after another tenant asked the same and was rejected', said), exchange };
}

test(
  'a tenant is served after another one was rejected for the same URL',
  about('4.2-success', { needs: 'page', isSupplement: true }),
  async ({ kit }) => {
    const tenantId = await kit.tenantOf('secondTenant');
    let asked = 0n;
    // A cache keyed by the URL alone would show the owner the rejection of the other tenant.
    const run = (): ReturnType<typeof ownerAfterStranger> => ownerAfterStranger(kit, tenantId, ++asked);
    await kit.checkAll({ id: '4.2-success', cause: 'after a rejection', needsAgain: true }, run);
  },
);

test(
  "forbidden: another tenant's path",
  about(['5-forbidden', '4.2-r3-one-tenant'], { needs: 'page' }),
  async ({ kit }) => {
    const [own, other] = [await kit.tenantOf('primary'), await kit.tenantOf('secondTenant')];
    // Each tenant first requests its own page, so that an answer or token cached for it would be served to the other.
    const later = {
      secondTenant: await laterPageOf(kit, 'secondTenant'),
      primary: await laterPageOf(kit, 'primary'),
    };
    for (const [client, tenantId] of [
      ['primary', other],
      ['secondTenant', own],
    ] as const) {
      const { query: laterQuery, refusals } = later[client];
      for (const query of [SHORT_PAGE, laterQuery, EMPTY_WINDOW]) {
        const exchange = await kit.send(kit.request(tenantId, query, client));
        const accepted = query === laterQuery ? refusals : [FORBIDDEN];
        kit.check('5-forbidden', exchange, refused(kit, ...accepted), client);
      }
    }
    // A gateway may compare tenants after the usual spelling of the scheme alone.
    const bearer = bearerHeader(`bearer ${(await kit.token()).text}`, 'bearer $TOKEN');
    const small = await kit.send(kit.request(other, EMPTY_WINDOW, bearer));
    kit.check('5-forbidden', small, notServed('403 forbidden'), 'the scheme in lower case');
    if (!later.secondTenant.hasCursor) return;
    // The cursor of another tenant on the own path.
    const request = kit.request(own, later.secondTenant.query, 'primary');
    const exchange = await kit.send({ ...request, offPath: true });
    kit.check('4.2-r3-one-tenant', exchange, onlyOf(own.toLowerCase()), "the other tenant's cursor");
  },
);

test(
  'forbidden or not_found: the path of an unknown tenant',
  about(['5-forbidden-unknown', '7.2-forbidden'], { needs: 'page' }),
  async ({ kit }) => {
    const { query, refusals } = await laterPageOf(kit, 'primary');
    const later = await kit.send(kit.request(UNKNOWN_TENANT, query));
    const exchange = await kit.send(kit.request(UNKNOWN_TENANT, SOME_WINDOW));
    kit.ledger.observe('unknown-tenant', sayRefusal(exchange, kit.target.errorCodePointer));
    // The observers check the code of a 403 (7.2-forbidden); a 404 is allowed here.
    kit.ledger.check('7.2-forbidden');
    for (const [answer, accepted] of [
      [later, refusals],
      [exchange, [FORBIDDEN]],
    ] as const)
      kit.check('5-forbidden-unknown', answer, refused(kit, ...accepted, NOT_FOUND));
  },
);

/** Only the own tenantId may be served; rejections with 400, 403 and 404 are all allowed. */
test(
  'no page at a path that is nearly the own tenantId',
  about('5-forbidden-unknown', { needs: 'page' }),
  async ({ kit }) => {
    const own = (await kit.tenantOf()).toLowerCase();
    const stranger = kit.target.clients.secondTenant ? await kit.tenantOf('secondTenant') : UNKNOWN_TENANT;
    const { clientId } = kit.target.clients.primary;
    const isOwn = clientId.toLowerCase().replaceAll('-', '').includes(own.replaceAll('-', ''));
    const id = isOwn ? [] : [encodeURIComponent(clientId)];
    await mapConcurrently([...nearlyOwnPaths(own, stranger), ...id], async (path) => {
      const request = kit.request(path, SOME_WINDOW);
      kit.check(
        '5-forbidden-unknown',
        await kit.send({ ...request, offPath: true, suspicious: isSuspicious(path) }),
        notServed(`no page at /tenants/${path}/`),
        'what is not the own UUID',
      );
    });
  },
);

test(
  'each client receives tokens of its own tenant, in turn',
  about('5-one-tenant', { needs: 'token' }),
  async ({ kit }) => {
    // Fails here if the credentials issue no token at all.
    await kit.token('secondTenant');
    await kit.tenantOf('secondTenant');
    const first = await kit.client.mint('primary');
    await checkTenantOfToken(kit, 'primary', first);
    for (const client of ['secondTenant', 'primary', 'secondTenant'] as const)
      await checkTenantOfToken(kit, client, await kit.client.mint(client), first);
  },
);

test(
  'each client receives tokens of its own tenant, concurrently',
  about(['5-one-tenant', '4.1-success'], { needs: 'token', isSupplement: true }),
  async ({ kit }) => {
    const hasSecond = kit.target.clients.secondTenant !== undefined;
    if (hasSecond) {
      await kit.token('secondTenant');
      await kit.tenantOf('secondTenant');
    }
    for (const round of hasSecond ? ROUNDS : [ONE_CLIENT]) {
      const minted = await mapConcurrently(round, (client) => kit.client.mint(client));
      for (const [index, exchange] of minted.entries())
        await checkTenantOfToken(kit, round[index]!, exchange, minted[0]);
    }
  },
);

/** Only the credentials determine the tenant of a token, not a parameter of the request. */
test(
  'no parameter of a token request chooses the tenant',
  about(['5-one-tenant', '4.1-unknown-parameters'], { needs: 'token', isSupplement: true }),
  async ({ kit }) => {
    const own = (await kit.tenantOf()).toLowerCase();
    const other = kit.target.clients.secondTenant ? await kit.tenantOf('secondTenant') : UNKNOWN_TENANT;
    for (const name of TENANT_NAMES) {
      const form = [...kit.client.validForm('primary'), [name, other] as const];
      const exchange = await kit.send(kit.client.tokenRequest(form));
      kit.check('4.1-unknown-parameters', exchange, unknownIgnored, name);
      kit.check(
        '5-one-tenant',
        exchange,
        ofOwnTenant(own, `${name} asks`),
        'a parameter that chose the tenant',
      );
    }
    await inHalves(OTHER_PLACES, async (some) => {
      const at = (place: string): [string, string][] =>
        some.flatMap(([known, name]): [string, string][] => (known === place ? [[name, other]] : []));
      const request = tokenRequestOf(kit, formEncode([...kit.client.validForm('primary'), ...at('form')]));
      const cookies = at('cookie').map((pair) => pair.join('='));
      const cookie: Record<string, string> = cookies.length > 0 ? { cookie: cookies.join('; ') } : {};
      const exchange = await kit.send({
        ...request,
        headers: { ...cookie, ...request.headers, ...Object.fromEntries(at('header')) },
        url: `${request.url}?${formEncode(at('query'))}`.replace(/\?$/, ''),
      });
      const judge = ofOwnTenant(own, 'headers, query and form ask');
      return (
        !kit.check('5-one-tenant', exchange, judge, 'another place') || readToken(exchange) !== undefined
      );
    });
  },
);

test(
  'no client_id in the form chooses the tenant where Basic authenticates another client',
  about('5-one-tenant', { needs: 'token', access: 'guesses', isSupplement: true }),
  async ({ kit }) => {
    const own = (await kit.tenantOf()).toLowerCase();
    const { clientId, clientSecret } = kit.target.clients.primary;
    const valid = kit.client.validForm('secondTenant');
    const form = replaced(valid, 'client_secret', clientSecret);
    if (formEncode(form) === formEncode(valid))
      throw new Untested('both clients have the same client_secret');
    const label = 'Basic (client_id and client_secret of primary)';
    const shell = `"$${secretVariable(kit.target, 'primary')}"`;
    const exchange = await kit.send({
      ...tokenRequestOf(kit, formEncode(form)),
      authorization: basic(clientId, clientSecret, label, shell),
    });
    kit.check('5-one-tenant', exchange, ofOwnTenant(own, 'client_id asks'), 'credentials of two clients');
    // A server that does not read Basic was sent a wrong secret.
    await kit.client.mint('secondTenant');
    // One that reads it may have ended the earlier token of primary.
    await kit.client.mint('primary');
  },
);

const TENANT_NAMES = ['tenant_id', 'tenantId', 'tenant'];
/** Where else a token request may name a tenant, and the names. */
const OTHER_PLACES = Object.entries({
  header: ['x-tenant-id', 'x-tenant', 'x-organization-id', 'x-realm'],
  cookie: TENANT_NAMES,
  query: TENANT_NAMES,
  form: ['organization_id', 'organization', 'org_id', 'account_id', 'realm', 'subject'],
}).flatMap(([place, names]) => names.map((name) => [place, name] as const));

/** Expects a token of the own tenant, or any rejection. */
const ofOwnTenant =
  (own: string, asking: string): Judge =>
  (answer) => {
    const tenantId = readToken(answer)?.tenantId?.toLowerCase();
    return tenantId === undefined || tenantId === own
      ? undefined
      : differs(`tenant_id: ${own}, whatever ${asking} for`, `tenant_id: ${tenantId}`);
  };

const BOTH = ['primary', 'secondTenant'] as const;
/** The first round opens connections, which delays one request; only the second is concurrent. */
const ROUNDS = [BOTH, [...BOTH, ...BOTH, ...BOTH]];
const ONE_CLIENT = ['primary', 'primary', 'primary', 'primary'] as const;

/** The token must name the tenant of its client, and the second tenant's must differ from that of `primary`, if given. */
async function checkTenantOfToken(
  kit: Kit,
  client: 'primary' | 'secondTenant',
  exchange: Exchange,
  primary?: Exchange,
): Promise<void> {
  const tenantOf = (minted: Exchange): string => readToken(minted)?.tenantId?.toLowerCase() ?? 'none';
  const tenantId = tenantOf(exchange);
  // A value that is not a UUID is reported under 2.2-tenant_id.
  if (!isUuid(tenantId)) throw new Untested('the tokens name no tenant_id that is a UUID');
  const expected = kit.target.clients[client]?.tenantId?.toLowerCase();
  const isOther = client === 'secondTenant' && primary !== undefined && tenantId === tenantOf(primary);
  kit.check('5-one-tenant', exchange, () =>
    (expected !== undefined && tenantId !== expected) || isOther
      ? differs(
          `tenant_id: ${expected ?? "the second tenant's own"} for clients.${client}`,
          `tenant_id: ${tenantId}`,
        )
      : undefined,
  );
}

/** Path segments that are aliases of the caller, or nearly the own tenantId, as sent in the path. */
function nearlyOwnPaths(own: string, stranger: string): string[] {
  const other = (digit: string): string => (digit === '0' ? '1' : '0');
  const groups = own.split('-');
  return [
    ...['me', '*', 'self', 'my', 'current', 'default', 'all', '-', '0', 'null'],
    // Compared before it is resolved.
    ...['/../', '/..;/', '%2F..%2F', '%252F..%252F', '%5C..%5C'].map((up) => `${own}${up}${stranger}`),
    '00000000-0000-0000-0000-000000000000',
    `${own}0`,
    `0${own}`,
    own.slice(0, -1),
    own.slice(1),
    `${own.slice(0, -1)}${other(own.at(-1)!)}`,
    `${other(own[0]!)}${own.slice(1)}`,
    [groups[0], ...UNKNOWN_TENANT.split('-').slice(1, -1), groups.at(-1)].join('-'),
    groups[0]!,
    `${own},${UNKNOWN_TENANT}`,
    `${UNKNOWN_TENANT},${own}`,
    `${own}%2F${UNKNOWN_TENANT}`,
    `${own}%00`,
  ];
}
