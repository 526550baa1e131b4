/** Section 5: for which tenant. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { TENANTS } from '../run/tenants.ts';
import {
  emptyPage,
  isTokenRequest,
  middleware,
  queryOf,
  refusal,
  refusals,
  storedPages,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { verifying } from './bearer.ts';
import { tripping, type Fault } from './fault.ts';
import { PAGES, REFUSALS, TOKEN_CLAIMS } from './may-trip.ts';
import { formOf } from './token-errors.ts';

const ALONE = { bare: false } as const;

export const tenants: readonly Fault[] = [
  ...tripping(
    { '5-forbidden': /403 forbidden.*200/ },
    { mayTrip: [...REFUSALS, '4.2-r3-one-tenant', '2.3-tenantId'], bare: false },
  )({
    "another tenant's path is served its screenings": pathTenant(),
  }),
  ...tripping(
    { '5-forbidden': /403 forbidden.*404/ },
    ALONE,
  )({
    "an onboarded tenant's path is 404 for another": refusals([403], () => refusal('404 not_found')),
  }),
  ...tripping(
    { '5-forbidden-unknown': /403 forbidden.*200/ },
    { mayTrip: REFUSALS },
  )({
    "another tenant's path is an empty page": refusals([403], emptyPage),
  }),
  ...tripping(
    { '5-forbidden-unknown': /403 forbidden.*401/ },
    { mayTrip: REFUSALS },
  )({
    "another tenant's path is 401": refusals([403], () => refusal('401 unauthenticated')),
  }),
  ...tripping(
    { '5-one-tenant': /tenant_id: / },
    {
      mayTrip: [...TOKEN_CLAIMS, '5-forbidden', '4.2-success', '4.2-r3-one-tenant', '7.2-not_found'],
      bare: false,
    },
  )({
    'a token cache shared between tenants': sharedTokens(),
    'of two mints at the same time both are the later one': mintedAtOnce(),
  }),
  ...tripping(
    { '4.2-r3-one-tenant': /only screenings of/, '2.3-tenantId': /as in the path/ },
    { mayTrip: PAGES, bare: false },
  )({
    "the other tenant's screening in the middle of a page": strangerInside(false),
  }),
  ...tripping(
    { '4.2-r3-one-tenant': /holds|both tenants/ },
    { mayTrip: PAGES, bare: false },
  )({
    "the other tenant's screening in the middle of a page, its tenantId rewritten": strangerInside(true),
  }),
  ...tripping(
    { '4.2-r3-one-tenant': /only screenings of/ },
    { mayTrip: ['2.3-tenantId'], bare: false },
  )({
    'a tenantId in the query goes before the one of the path': namedElsewhere(
      (request) => queryOf(request).get('tenantId') ?? undefined,
    ),
    'X-Tenant-Id goes before the tenant of the path': namedElsewhere(({ headers }) => headers['x-tenant-id']),
  }),
];

/** Its screenings are served, whose path and token ever it is. */
function namedElsewhere(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  const named = new AsyncLocalStorage<string | undefined>();
  return {
    wrapHandler: (handler) => (request) => named.run(tenantOf(request), () => handler(request)),
    ...storedPages(() => (query, ask) => ask({ ...query, tenantId: named.getStore() ?? query.tenantId })),
  };
}

function mintedAtOnce(): ServerOptions {
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
function pathTenant(): ServerOptions {
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

function sharedTokens(): ServerOptions {
  return middleware(() => {
    let kept: ServiceAnswer | undefined;
    return async (request, next) => {
      const answer = await next(request);
      if (!isTokenRequest(request) || answer.status !== 200) return answer;
      if (formOf(request).get('scope')?.[0] !== 'screenings.read') return answer;
      return (kept ??= answer);
    };
  });
}

function strangerInside(rewritten: boolean): ServerOptions {
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
