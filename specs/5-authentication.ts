/** Section 5: who may ask, and for which tenant. */
import {
  bearerOf,
  constantPart,
  encodePart,
  partsOf,
  cutTo,
  followedBy,
  inOtherCase,
  withLetter,
  withMembers,
  type TokenPart,
  type TokenParts,
} from '../fixtures/client/altered-token.ts';
import { Untested } from '../fixtures/client/client.ts';
import type { Authorization, Exchange } from '../fixtures/client/exchange.ts';
import { pageOf } from '../fixtures/client/page.ts';
import { claimsOf } from '../fixtures/client/token.ts';
import { differs, type Judge } from '../fixtures/checks/mismatch.ts';
import type { Kit } from '../fixtures/run/kit.ts';
import { codesOf, sayRefusal } from '../fixtures/checks/errors.ts';
import { isUuid } from '../fixtures/checks/page.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { sampleDataOf } from '../fixtures/run/survey.ts';
import { canonical, isObject, member } from '../fixtures/client/json.ts';
import { checkWalk, walk, type Walk } from '../fixtures/run/walk.ts';
import type { RequirementId } from '../fixtures/requirements.ts';
import { encoded, rawQuery, SOME_WINDOW } from './7.2-rest-errors.ts';

/** Makes a request one of a later page. */
const LATER_PAGE = '&from_id=1';

/** A tenant that nobody has. */
const NOBODY = '00000000-0000-4000-8000-00000000dead';

const refused =
  (pointer: string | undefined, ...accepted: readonly (readonly [number, string])[]): Judge =>
  (exchange) =>
    accepted.some(([status, code]) => exchange.status === status && codesOf(exchange, pointer).includes(code))
      ? undefined
      : differs(
          accepted.map(([status, code]) => `${status} ${code}`).join(' or '),
          sayRefusal(exchange, pointer),
        );

/** A request of primary's own path with another way to say who asks; it must be answered 401 unauthenticated. */
async function unauthenticated(
  kit: Kit,
  id: RequirementId,
  authorization: Authorization,
  extraQuery = '',
): Promise<void> {
  const query = `${rawQuery(encoded(SOME_WINDOW))}${extraQuery}`;
  const exchange = await kit.send(kit.request(await kit.tenantOf(), query, authorization));
  if (exchange.transportError?.kind === 'timeout') throw new Untested(exchange.transportError.message);
  const label = authorization.kind === 'header' ? authorization.label : 'no Authorization header';
  kit.check(id, exchange, refused(kit.target.errorCodePointer, [401, 'unauthenticated']), label);
}

const header = (value: string, label: string, shell = label): Authorization => ({
  kind: 'header',
  value,
  label,
  shell,
});

/** Bearers of altered tokens, each by one alteration. */
function alteredBearers(token: string): Authorization[] {
  const [head, payload, signature] = partsOf(token);
  const exp = Number(member(claimsOf(token), 'exp') ?? 0);
  const none = constantPart('');
  const unsigned = (alg: string): TokenPart => withMembers(head, { alg });
  const altered: [label: string, ...parts: TokenParts][] = [
    ['payload altered: exp a day later', head, withMembers(payload, { exp: exp + 86_400 }), signature],
    ['payload altered: another sub', head, withMembers(payload, { sub: 'somebody-else' }), signature],
    [
      'signature altered in its middle',
      head,
      payload,
      withLetter(signature, Math.floor(signature.text.length / 2), 'A'),
    ],
    ['signature in the other case', head, payload, inOtherCase(signature)],
    ['four more letters behind the signature', head, payload, followedBy(signature, 'AAAA')],
    ['signature cut short', head, payload, cutTo(signature, signature.text.length >> 1)],
    ['signature removed', head, payload, none],
    ['signature of zeros', head, payload, constantPart('A'.repeat(signature.text.length))],
    ['alg: none, no signature', unsigned('none'), payload, none],
    ['alg: None, no signature', unsigned('None'), payload, none],
    ['alg: none, the old signature', unsigned('none'), payload, signature],
    ['alg: HS256, the old signature', withMembers(head, { alg: 'HS256', kid: 'kit' }), payload, signature],
  ];
  return altered
    .filter(([, ...parts]) => parts.map(({ text }) => text).join('.') !== token)
    .map(([label, ...parts]) => bearerOf(parts, label));
}

async function altered(kit: Kit): Promise<void> {
  const { text, claims } = await kit.token();
  if (!claims) throw new Untested('the access token is no JWT, so no part of it can be altered');
  for (const bearer of alteredBearers(text)) await unauthenticated(kit, '5-tampered', bearer);
  const { secondTenant } = kit.target.clients;
  if (!secondTenant) return;
  // A forged tenant on that tenant's own path: the signature alone is wrong.
  const tenantId = await kit.tenantOf('secondTenant');
  const [head, payload, signature] = partsOf(text);
  const authorization = bearerOf(
    [head, withMembers(payload, { tenant_id: tenantId }), signature],
    "payload altered: another tenant's tenant_id",
  );
  const exchange = await kit.send(kit.request(tenantId, rawQuery(encoded(SOME_WINDOW)), authorization));
  kit.check(
    '5-tampered',
    exchange,
    refused(kit.target.errorCodePointer, [401, 'unauthenticated']),
    'forged tenant',
  );
}

/** Both tenants' screenings over one window, asked for in turn so that nothing kept from the one serves the other. */
async function bothWalks(kit: Kit): Promise<[Walk, Walk]> {
  const { window } = await sampleDataOf(kit);
  const query = { ...window, pageSize: 400 };
  const primary = await checkWalk(kit, query, { maxPages: 10 }, 'beside the second tenant');
  const second = await walk(kit, query, { client: 'secondTenant', maxPages: 10 });
  await walk(kit, query, { maxPages: 2 });
  return [primary, second];
}

/** The same screening in both walks: not the same id alone, which two tenants may use each for its own. */
function shared(primary: Walk, second: Walk): string | undefined {
  const content = ({ json }: { json: unknown }): string => {
    const fields = isObject(json as never) ? { ...(json as object) } : {};
    return canonical({ ...fields, tenantId: null } as never);
  };
  const held = new Map(primary.items.map((item) => [content(item), item]));
  return second.items
    .map((item) => ({ item, twin: held.get(content(item)) }))
    .find(({ item, twin }) => twin && twin.id === item.id)
    ?.item.id.toString();
}

const requireSecond = (kit: Kit): void => {
  if (!kit.target.clients.secondTenant) throw new Untested('supply clients.secondTenant in the target file');
};

export const probes: readonly Probe[] = [
  {
    ids: ['5-missing', '7.2-unauthenticated', '5-challenge'],
    name: 'no Authorization header',
    precondition: 'page',
    run: async (kit) => {
      // Asked with a token first, so that an answer kept before the token is looked at would show.
      await kit.page(SOME_WINDOW);
      await unauthenticated(kit, '5-missing', { kind: 'none' });
      await unauthenticated(kit, '5-missing', { kind: 'none' }, LATER_PAGE);
    },
  },
  {
    ids: ['5-scheme'],
    name: 'what is no bearer token',
    precondition: 'page',
    run: async (kit) => {
      const { text } = await kit.token();
      const { clientId, clientSecret } = kit.target.clients.primary;
      const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
      const credentials = `$(printf %s '${clientId.replaceAll("'", "'\\''")}':"$SCREENINGS_CLIENT_SECRET" | base64 | tr -d '\\n')`;
      const others: [value: string, label: string, shell?: string][] = [
        [`Basic ${basic}`, 'Basic (client_id and client_secret)', `Basic ${credentials}`],
        [`Basic ${text}`, 'Basic $TOKEN'],
        [`Token ${text}`, 'Token $TOKEN'],
        [text, '$TOKEN (without a scheme)', '$TOKEN'],
        ['Bearer', 'Bearer (without a token)', 'Bearer'],
        ['Bearer ', 'Bearer (with a space and no token)', 'Bearer '],
      ];
      for (const other of others) await unauthenticated(kit, '5-scheme', header(...other));
    },
  },
  {
    ids: ['5-garbage'],
    name: 'strings that are no token',
    precondition: 'page',
    run: async (kit) => {
      for (const text of [
        'garbage',
        'a.b.c',
        '..',
        'null',
        encodePart({ tenant_id: await kit.tenantOf() }),
      ]) {
        await unauthenticated(kit, '5-garbage', header(`Bearer ${text}`, `Bearer ${text}`));
      }
    },
  },
  { ids: ['5-tampered'], name: 'altered tokens', precondition: 'page', run: altered },
  {
    ids: ['5-expired'],
    name: 'an expired token',
    precondition: 'page',
    run: async (kit) => {
      const { expiredToken } = kit.target;
      if (!expiredToken)
        throw new Untested('supply expiredToken (a token of clients.primary from more than an hour ago)');
      const exp = Number(member(claimsOf(expiredToken), 'exp') ?? 0);
      if (exp > Date.now() / 1000 - 60) throw new Untested('expiredToken has not expired yet');
      await unauthenticated(
        kit,
        '5-expired',
        header(`Bearer ${expiredToken}`, 'Bearer (the expired token)', 'Bearer $EXPIRED_TOKEN'),
      );
    },
  },
  {
    ids: ['5-query-token'],
    name: 'a token in the query',
    precondition: 'page',
    run: async (kit) => {
      const { text } = await kit.token();
      for (const name of ['access_token', 'token']) {
        await unauthenticated(kit, '5-query-token', { kind: 'none' }, `&${name}=${text}`);
      }
    },
  },
  {
    ids: ['5-scheme-case'],
    name: 'bearer in another case',
    precondition: 'page',
    run: async (kit) => {
      const { text } = await kit.token();
      for (const scheme of ['bearer', 'BEARER']) {
        const authorization = header(`${scheme} ${text}`, `${scheme} $TOKEN`);
        const exchange = await kit.send(
          kit.request(await kit.tenantOf(), rawQuery(encoded(SOME_WINDOW)), authorization),
        );
        kit.check('5-scheme-case', exchange, (answer) =>
          answer.status === 200 ? undefined : differs('200', sayRefusal(answer)),
        );
      }
    },
  },
  {
    ids: ['5-forbidden'],
    name: "another tenant's path",
    precondition: 'page',
    run: async (kit) => {
      requireSecond(kit);
      const [own, other] = [await kit.tenantOf('primary'), await kit.tenantOf('secondTenant')];
      const ask = (client: 'primary' | 'secondTenant', tenantId: string, query = ''): Promise<Exchange> =>
        kit.send(
          kit.request(tenantId, `${rawQuery(encoded(SOME_WINDOW))}${query}`, { kind: 'client', client }),
        );
      // Each tenant asks for its own first, so that a kept answer or token would show.
      for (const [client, tenantId] of [
        ['secondTenant', other],
        ['primary', own],
      ] as const)
        await ask(client, tenantId);
      for (const [client, tenantId] of [
        ['primary', other],
        ['secondTenant', own],
      ] as const) {
        for (const query of ['', LATER_PAGE]) {
          kit.check(
            '5-forbidden',
            await ask(client, tenantId, query),
            refused(kit.target.errorCodePointer, [403, 'forbidden']),
            client,
          );
        }
      }
    },
  },
  {
    ids: ['5-forbidden-unknown', '7.2-forbidden'],
    name: 'the path of a tenant that nobody has',
    precondition: 'page',
    run: async (kit) => {
      const exchange = await kit.send(
        kit.request(NOBODY, rawQuery(encoded(SOME_WINDOW)), { kind: 'client', client: 'primary' }),
      );
      kit.ledger.observe('unknown-tenant', sayRefusal(exchange, kit.target.errorCodePointer));
      // If it is a 403, its code was judged on its way; a 404 is allowed here.
      kit.ledger.check('7.2-forbidden');
      kit.check(
        '5-forbidden-unknown',
        exchange,
        refused(kit.target.errorCodePointer, [403, 'forbidden'], [404, 'not_found']),
      );
    },
  },
  {
    ids: ['5-one-tenant'],
    name: 'tokens of both tenants in turn',
    precondition: 'token',
    run: async (kit) => {
      requireSecond(kit);
      const tenants: string[] = [];
      for (const client of ['primary', 'secondTenant', 'primary', 'secondTenant'] as const) {
        const exchange = await kit.client.mint(client);
        const claim = member(claimsOf(String(member(exchange.json, 'access_token') ?? '')), 'tenant_id');
        const tenantId = typeof claim === 'string' ? claim.toLowerCase() : 'none';
        // What is no UUID is reported under 2.2-tenant_id.
        if (!isUuid(tenantId)) throw new Untested('the tokens name no tenant_id that is a UUID');
        const expected = kit.target.clients[client]?.tenantId?.toLowerCase();
        tenants.push(tenantId);
        kit.check('5-one-tenant', exchange, () =>
          (expected !== undefined && tenantId !== expected) ||
          (client === 'secondTenant' && tenantId === tenants[0])
            ? differs(
                `tenant_id: ${expected ?? "the second tenant's own"} for clients.${client}`,
                `tenant_id: ${tenantId}`,
              )
            : undefined,
        );
      }
    },
  },
  {
    ids: ['4.2-r3-one-tenant'],
    name: 'walks of both tenants',
    precondition: 'data',
    run: async (kit) => {
      requireSecond(kit);
      const [primary, second] = await bothWalks(kit);
      if (second.items.length === 0) {
        throw new Untested("clients.secondTenant has no screenings in primary's window; load some there");
      }
      await kit.checkAll('4.2-r3-one-tenant', 'shared', async () => {
        const twin = shared(primary, second);
        return twin === undefined
          ? undefined
          : {
              ...differs(
                "none of the other tenant's screenings",
                `item ${twin} in the walks of both tenants`,
              ),
              exchange: second.exchanges[0]!,
            };
      });
      for (const [walked, client] of [
        [primary, 'primary'],
        [second, 'secondTenant'],
      ] as const) {
        const own = (await kit.tenantOf(client)).toLowerCase();
        for (const exchange of walked.exchanges) kit.check('4.2-r3-one-tenant', exchange, allOf(own), client);
      }
      await foreign(kit, primary, 'primary', 'secondTenant');
      await foreign(kit, second, 'secondTenant', 'primary');
    },
  },
];

const allOf =
  (tenantId: string): Judge =>
  (exchange) => {
    const odd = (pageOf(exchange).items ?? []).find((item) => item.tenantId?.toLowerCase() !== tenantId);
    return odd
      ? differs(`only screenings of ${tenantId}`, `item ${odd.id ?? '?'} of tenant ${odd.tenantId ?? 'none'}`)
      : undefined;
  };

/** With both datasets: a screening that the other tenant's dataset holds, whatever tenantId it claims. */
async function foreign(
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
        const odd = (pageOf(page).items ?? []).find(
          ({ id }) => id !== undefined && !ours.get(id) && theirs.get(id) !== undefined,
        );
        return odd
          ? differs(`only screenings of clients.${own}`, `item ${odd.id}, which clients.${other} holds`)
          : undefined;
      },
      `foreign to ${own}`,
    );
  }
}
