/** Section 5: for which tenant. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseForm } from '../http/form.ts';
import { errorAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import { TENANTS } from '../run/tenants.ts';
import { isTokenRequest, middleware, queryOf, refusals, storedPages } from '../run/alter.ts';
import { emptyPage, verifying } from './authentication.ts';
import type { Fault } from './fault.ts';

/** Other requirements that another tenant's screening in the middle of a page breaks. */
const STRANGER_INSIDE = [
  '4.2-offsets',
  '4.2-window',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-from-inclusive',
  '4.2-from_id',
] as const;

export const tenants: readonly Fault[] = [
  {
    name: "another tenant's path is served its screenings",
    trips: { '5-forbidden': /403 forbidden.*200/ },
    mayTrip: ['5-forbidden-unknown', '4.2-r3-one-tenant', '7.2-not_found', '2.3-tenantId'],
    bare: false,
    server: pathTenant(),
  },
  {
    name: "another tenant's path is an empty page",
    trips: { '5-forbidden-unknown': /403 forbidden.*200/ },
    mayTrip: ['5-forbidden'],
    server: refusals([403], emptyPage),
  },
  {
    name: "an onboarded tenant's path is 404 for another",
    trips: { '5-forbidden': /403 forbidden.*404/ },
    bare: false,
    server: refusals([403], () => errorAnswer(404, 'not_found', 'no such tenant')),
  },
  {
    name: "another tenant's path is 401",
    trips: { '5-forbidden-unknown': /403 forbidden.*401/ },
    mayTrip: ['5-forbidden'],
    server: refusals([403], () => errorAnswer(401, 'unauthenticated', 'wrong tenant')),
  },
  {
    name: 'a token cache shared between tenants',
    trips: { '5-one-tenant': /tenant_id: / },
    mayTrip: [
      '2.2-tenant_id',
      '2.2-sub-client',
      '5-forbidden',
      '4.2-success',
      '4.2-r3-one-tenant',
      '7.2-not_found',
    ],
    bare: false,
    server: sharedTokens(),
  },
  {
    name: "the other tenant's screening in the middle of a page",
    trips: { '4.2-r3-one-tenant': /only screenings of/, '2.3-tenantId': /as in the path/ },
    mayTrip: STRANGER_INSIDE,
    bare: false,
    server: strangerInside(false),
  },
  {
    name: "the other tenant's screening in the middle of a page, its tenantId rewritten",
    trips: { '4.2-r3-one-tenant': /holds|both tenants/ },
    mayTrip: STRANGER_INSIDE,
    bare: false,
    server: strangerInside(true),
  },
  {
    name: 'a tenantId in the query goes before the one of the path',
    trips: { '4.2-r3-one-tenant': /only screenings of/ },
    mayTrip: ['2.3-tenantId'],
    bare: false,
    server: namedElsewhere((request) => queryOf(request).get('tenantId') ?? undefined),
  },
  {
    name: 'X-Tenant-Id goes before the tenant of the path',
    trips: { '4.2-r3-one-tenant': /only screenings of/ },
    mayTrip: ['2.3-tenantId'],
    bare: false,
    server: namedElsewhere(({ headers }) => headers['x-tenant-id']),
  },
  {
    name: 'of two mints at the same time both are the later one',
    trips: { '5-one-tenant': /tenant_id: / },
    mayTrip: ['2.2-tenant_id', '2.2-sub-client', '2.2-aud', '2.2-scope', '2.1-scope', '5-forbidden'],
    bare: false,
    server: mintedAtOnce(),
  },
];

/** Its screenings are served, whose path and token ever it is. */
function namedElsewhere(
  tenantOf: (request: ServiceRequest) => string | undefined,
): NonNullable<Fault['server']> {
  const named = new AsyncLocalStorage<string | undefined>();
  return {
    wrapHandler: (handler) => (request) => named.run(tenantOf(request), () => handler(request)),
    ...storedPages(() => (query, ask) => ask({ ...query, tenantId: named.getStore() ?? query.tenantId })),
  };
}

function mintedAtOnce(): NonNullable<Fault['server']> {
  return {
    wrapParts: (parts) => {
      const mint = parts.tokens.mint.bind(parts.tokens);
      let latest: Parameters<typeof mint>[0];
      return {
        ...parts,
        tokens: {
          ...parts.tokens,
          verify: parts.tokens.verify.bind(parts.tokens),
          mint: async (claims) => {
            latest = claims;
            // Longer than a busy machine takes between two concurrent requests.
            await sleep(30);
            return mint(latest);
          },
        },
      };
    },
  };
}

/** The claim's tenant is never compared: the path's tenant is taken for it. */
function pathTenant(): NonNullable<Fault['server']> {
  const path = new AsyncLocalStorage<string>();
  return {
    wrapHandler: (handler) => (request) =>
      path.run(/\/tenants\/([^/?]+)/.exec(request.path)?.[1] ?? '', () => handler(request)),
    ...verifying(() => async (token, nowSeconds, real) => {
      const claims = await real(token, nowSeconds);
      return claims && { ...claims, tenant_id: path.getStore() ?? claims.tenant_id };
    }),
  };
}

function sharedTokens(): NonNullable<Fault['server']> {
  return middleware(() => {
    let kept: ServiceAnswer | undefined;
    return async (request, next) => {
      const answer = await next(request);
      if (!isTokenRequest(request) || answer.status !== 200) return answer;
      const scopes = parseForm(request.body.toString())?.get('scope');
      if (scopes?.[0] !== 'screenings.read') return answer;
      return (kept ??= answer);
    };
  });
}

function strangerInside(rewritten: boolean): NonNullable<Fault['server']> {
  return storedPages(() => async (query, ask) => {
    const page = await ask(query);
    const middle = page.items[page.items.length >> 1];
    if (page.items.length < 5 || !middle) return page;
    const { fromId: _, ...window } = query;
    const others = await ask({ ...window, tenantId: TENANTS.secondTenant, pageSize: 1 });
    const [stranger] = others.items;
    if (!stranger) return page;
    const json = rewritten
      ? stranger.json.replace(/"tenantId":"[^"]*"/, `"tenantId":"${query.tenantId}"`)
      : stranger.json;
    const items = page.items.map((item) => (item === middle ? { ...stranger, json } : item));
    return { ...page, items };
  });
}
