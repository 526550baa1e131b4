/** Section 5: faults in the separation of tenants, and in how paths name them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import type { PageQuery, TokenClaims } from '../parts.ts';
import { TENANTS } from '../run/provisioning.ts';
import {
  emptyPage,
  isTokenRequest,
  withRequestValue,
  middleware,
  minting,
  queryOf,
  refusal,
  refusals,
  requests,
  storedPages,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf, payloadOf, verifying } from './bearer.ts';
import {
  REFUSALS,
  TOKEN_CLAIMS,
  fullFaults,
  pageFaults,
  refusalFaults,
  tripping,
  type Fault,
} from './fault.ts';
import { formOf } from './token-errors.ts';

export const tenants: readonly Fault[] = [
  ...tripping(
    { '5-forbidden': /403 forbidden.*200/ },
    { mayTrip: [...REFUSALS, '4.2-r3-one-tenant', '2.3-tenantId'], bare: false },
  )({ "another tenant's path is served its screenings": pathTenant() }),
  ...fullFaults({ '5-forbidden': /403 forbidden.*404/ })({
    "an onboarded tenant's path is 404 for another": refusals([403], () => refusal('404 not_found')),
  }),
  ...refusalFaults({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    "another tenant's path is an empty page": refusals([403], emptyPage),
  }),
  ...refusalFaults({ '5-forbidden-unknown': /403 forbidden.*401/ })({
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
    'of two mints at the same time both are the later one': concurrentMints(2),
    'of three mints at the same time the third and later ones are the latest one': concurrentMints(3),
  }),
  ...pageFaults(
    { '4.2-r3-one-tenant': /only screenings of/, '2.3-tenantId': /as in the path/ },
    { bare: false },
  )({ "the other tenant's screening in the middle of a page": foreignScreening(false) }),
  ...pageFaults(
    { '4.2-r3-one-tenant': /only screenings of/ },
    { bare: false, target: ({ dataset: _, secondDataset: __, ...target }) => target },
  )({
    "the other tenant's screening in the middle of a later page": foreignScreening(
      false,
      ({ fromId }) => fromId !== undefined,
    ),
    'the tenant is kept in a variable that all requests share': storedPages(() => {
      let tenantId = '';
      return async (query, ask) => {
        tenantId = query.tenantId;
        // Simulates the latency of a call to another service, so that requests overlap.
        await sleep(20);
        return ask({ ...query, tenantId });
      };
    }),
  }),
  ...pageFaults(
    { '4.2-r3-one-tenant': /holds|both tenants/ },
    { bare: false },
  )({
    "the other tenant's screening in the middle of a page, its tenantId rewritten": foreignScreening(true),
  }),
  ...tripping(
    { '4.2-r3-one-tenant': /only screenings of/ },
    { mayTrip: ['2.3-tenantId'], bare: false },
  )({
    'a tenantId in the query goes before the one of the path': namedElsewhere(
      (request) => queryOf(request).get('tenantId') ?? undefined,
    ),
    'X-Tenant-Id goes before the tenant of the path': namedElsewhere(({ headers }) => headers['x-tenant-id']),
    'X-Original-URL goes before the path, after the tenant was compared': namedElsewhere(
      ({ headers }) => /tenants\/([^/]+)/.exec(headers['x-original-url'] ?? '')?.[1],
    ),
    'a cookie called tenant goes before the tenant of the path': namedElsewhere(
      ({ headers }) => /\btenant=([^;]+)/.exec(headers['cookie'] ?? '')?.[1],
    ),
  }),
];

function namedElsewhere(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  return withRequestValue(tenantOf, (current) =>
    storedPages(() => (query, ask) => ask({ ...query, tenantId: current() ?? query.tenantId })),
  );
}

function concurrentMints(least: number): ServerOptions {
  return minting(() => {
    let latest: TokenClaims;
    let inFlight = 0;
    return async (claims, real) => {
      latest = claims;
      const isMixedUp = ++inFlight >= least || least === 2;
      // Longer than the delay between two concurrent requests on a busy machine.
      await sleep(30);
      inFlight--;
      return real(isMixedUp ? latest : claims);
    };
  });
}

function pathTenant(): ServerOptions {
  const tenantOf = ({ path }: ServiceRequest): string => /\/tenants\/([^/?]+)/.exec(path)?.[1] ?? '';
  return withRequestValue(tenantOf, (current) =>
    verifying(() => async (token, nowSeconds, real) => {
      const claims = await real(token, nowSeconds);
      return claims && { ...claims, tenant_id: current() };
    }),
  );
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

function foreignScreening(
  rewritten: boolean,
  onPage: (query: PageQuery) => boolean = () => true,
): ServerOptions {
  return storedPages(() => async (query, ask) => {
    const page = await ask(query);
    const middle = page.items[page.items.length >> 1];
    if (page.items.length < 5 || !middle || !onPage(query)) return page;
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

/** Replaces a tenant in the path that is like the token's tenant by the token's tenant. */
const replacingTenant = (isLike: (shown: string, own: string) => boolean): ServerOptions =>
  requests((request) => {
    const own = payloadOf(authorizationOf(request).replace(/^Bearer /, ''))?.tenant_id;
    const path = request.path.replace(
      /(\/tenants\/)([^/?]+)(?=\/screenings(\?|$))/,
      (whole, before: string, shown: string) =>
        own !== undefined && isLike(shown.toLowerCase(), own) ? `${before}${own}` : whole,
    );
    return { ...request, path };
  });

export const paths: readonly Fault[] = tripping({ '5-forbidden-unknown': /no page at \/tenants\/.*200/ })({
  'me is the tenant of the token': replacingTenant((shown) => shown === 'me'),
  'a star stands for the own tenant': replacingTenant((shown) => shown === '*'),
  'the UUID is compared by its last group': replacingTenant(
    (shown, own) => shown.endsWith(own.slice(-12)) && shown.length === own.length,
  ),
  'the UUID is searched for in the path': replacingTenant((shown, own) => shown.includes(own)),
});
