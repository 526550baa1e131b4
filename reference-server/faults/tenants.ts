/** Section 5: faults in the separation of tenants. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareInstants, instant, sayInstant } from '../../engine/data/instant.ts';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import type { PageQuery, StoredPage, TokenClaims } from '../parts.ts';
import { TENANTS } from '../run/provisioning.ts';
import {
  accepting,
  both,
  emptyPage,
  intercepting,
  isScreenings,
  isTokenRequest,
  withRequestValue,
  middleware,
  minting,
  nextUrls,
  oauthError,
  queryOf,
  refusal,
  refusals,
  storedPages,
  type PageOf,
} from '../run/alter.ts';
import { hasParameter } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';
import { cookieOf, payloadOf, tokenOf, verified } from './bearer.ts';
import { PAGES, REFUSALS, TOKEN_CLAIMS, theme, type Fault, withoutDatasets } from './fault.ts';
import { authenticatedByBasic, fieldOf } from './forms.ts';
import { EVERYTHING, merged } from './rows.ts';

const { fails, failsFull } = theme([...REFUSALS, ...PAGES, ...TOKEN_CLAIMS]);

const inHeader =
  (name: string) =>
  ({ headers }: ServiceRequest): string | undefined =>
    headers[name];
const inQuery =
  (name: string) =>
  (request: ServiceRequest): string | undefined =>
    queryOf(request).get(name) ?? undefined;

/** A cursor in next names the tenant. */
const cursorOfTenant = nextUrls((next) => {
  next.searchParams.set('cursor', /tenants\/([^/]+)/.exec(next.pathname)?.[1] ?? '');
  return next;
});

/** The ids of the second tenant's screenings. */
const idsOfSecond = async (query: PageQuery, ask: PageOf): Promise<Set<bigint>> => {
  const { items } = await ask({ ...query, ...EVERYTHING, fromId: undefined, tenantId: TENANTS.secondTenant });
  return new Set(items.map(({ id }) => id));
};

export const tenants: readonly Fault[] = [
  ...failsFull({ '4.2-from_id': /on the page|strictly after|items/ })({
    "a from_id of another tenant's screening selects nothing": storedPages(() => {
      let foreign: Promise<Set<bigint>> | undefined;
      return async (query, ask) => {
        const { fromId, tenantId } = query;
        const isForeign =
          fromId !== undefined &&
          tenantId === TENANTS.primary &&
          (await (foreign ??= idsOfSecond(query, ask))).has(fromId);
        return isForeign ? { items: [], more: false } : ask(query);
      };
    }),
  }),
  ...fails({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'the tenant of a cursor is compared, and not the one of the path': both(
      accepting('forbidden', hasParameter('cursor')),
      cursorOfTenant,
    ),
    "another tenant's path is an empty page": refusals([403], emptyPage),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*200/ })({
    'serves the tenant of the path, whatever the token': claiming(
      ({ path }) => /\/tenants\/([^/?]+)/.exec(path)?.[1],
    ),
    'X-Tenant-Id is compared with the path in place of the token': claiming(inHeader('x-tenant-id')),
    'tenant_id in the query is compared with the path in place of the token': claiming(inQuery('tenant_id')),
    'X-Tenant-Id is compared with the token in place of the path': comparedWithToken(inHeader('x-tenant-id')),
    'tenant_id in the query is compared with the token in place of the path': comparedWithToken(
      inQuery('tenant_id'),
    ),
    'concurrent requests for one URL with valid tokens share the answer': sharedInFlight(),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*404/ })({
    "another onboarded tenant's path is 404": refusals([403], () => refusal('404 not_found')),
  }),
  ...failsFull({ '5-one-tenant': /tenant_id: / })({
    'tenants share a token cache': middleware(() => {
      let kept: ServiceAnswer | undefined;
      return async (request, next) => {
        const answer = await next(request);
        const isMint = answer.status === 200 && fieldOf('scope')(request) === 'screenings.read';
        return isMint ? (kept ??= answer) : answer;
      };
    }),
    'the third of three concurrent mints returns the latest one': minting(() => {
      let latest: TokenClaims;
      let inFlight = 0;
      return async (claims, real) => {
        latest = claims;
        const isMixedUp = ++inFlight >= 3;
        // Longer than the delay between two concurrent requests on a busy machine.
        await sleep(30);
        inFlight--;
        return real(isMixedUp ? latest : claims);
      };
    }),
  }),
  ...failsFull({ '4.2-r3-one-tenant': /only screenings of/ })({
    // Both sides of an `or`: the ties of the cursor are those of every tenant. The tenants share no instant here.
    'ties of the cursor are selected without their tenant': storedPages(() => async (query, ask) => {
      const { fromId, ...window } = query;
      const isAt = ({ items: [item] }: StoredPage): boolean =>
        item !== undefined && compareInstants(instant(item.testTime), query.from) === 0;
      if (fromId === undefined || isAt(await ask({ ...window, pageSize: 1 }))) return ask(query);
      const foreign = await ask({ ...query, tenantId: TENANTS.secondTenant, pageSize: 1 });
      return merged(query, ask, isAt(foreign) ? foreign.items : []);
    }),
    "a page after a cursor holds the other tenant's screening": withoutDatasets(
      foreignScreening(false, ({ fromId }) => fromId !== undefined),
    ),
    'concurrent requests share the variable that holds the tenant': withoutDatasets(
      storedPages(() => {
        let tenantId = '';
        return async (query, ask) => {
          tenantId = query.tenantId;
          // Simulates the latency of a call to another service, so that requests overlap.
          await sleep(20);
          return ask({ ...query, tenantId });
        };
      }),
    ),
    'concurrent requests for one window share the answer of the store': withoutDatasets(
      storedPages(() => {
        const inFlight = new Map<string, Promise<StoredPage>>();
        return (query, ask) => {
          const { from, to, fromId, pageSize } = query;
          const key = [...[from, to].map(sayInstant), fromId, pageSize].join();
          // Simulates the latency of a store.
          const page = inFlight.get(key) ?? sleep(20).then(() => ask(query));
          inFlight.set(key, page);
          return page.finally(() => inFlight.delete(key));
        };
      }),
    ),
    'tenantId in the query overrides the path': storedTenant(inQuery('tenantId')),
    'account_id in the query overrides the path': storedTenant(inQuery('account_id')),
    'X-Scope-OrgID overrides the path': storedTenant(inHeader('x-scope-orgid')),
    'the tenant of a cursor overrides the path': both(storedTenant(inQuery('cursor')), cursorOfTenant),
    'X-Original-URL overrides the path after authorization': storedTenant(
      ({ headers }) => /tenants\/([^/]+)/.exec(headers['x-original-url'] ?? '')?.[1],
    ),
  }),
  ...failsFull({ '4.2-r3-one-tenant': /holds|both tenants/ })({
    "a page holds the other tenant's screening with the own tenantId": foreignScreening(true),
  }),
  ...fails({ '5-one-tenant': /whatever tenant_id asks for/ })({
    'the parameter tenant_id chooses the tenant of the token': mintingFor(fieldOf('tenant_id')),
  }),
  ...fails({ '5-one-tenant': /whatever headers, query and form ask for/ })({
    'X-Tenant-Id chooses the tenant of the token': mintingFor(inHeader('x-tenant-id')),
    'a query is invalid_request, and X-Tenant-Id chooses the tenant of the token': both(
      mintingFor(inHeader('x-tenant-id')),
      intercepting(
        () => oauthError(400, 'invalid_request'),
        (request) => isTokenRequest(request) && request.path.includes('?'),
      ),
    ),
    'tenant_id in the query chooses the tenant of the token': mintingFor(inQuery('tenant_id')),
    'the parameter organization_id chooses the tenant of the token': mintingFor(fieldOf('organization_id')),
    'the parameter account_id chooses the tenant of the token': mintingFor(fieldOf('account_id')),
    'the cookie tenant chooses the tenant of the token': mintingFor((request) => cookieOf(request, 'tenant')),
  }),
  ...failsFull({ '5-one-tenant': /whatever client_id asks for/ })({
    'Basic authenticates the client, and client_id names the one of the token': both(
      authenticatedByBasic(),
      mintingFor((request) =>
        fieldOf('client_id')(request) === 'secondTenant-client' ? TENANTS.secondTenant : undefined,
      ),
    ),
  }),
];

/** Reads the pages of the tenant that a request names elsewhere. */
function storedTenant(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  return withRequestValue(tenantOf, (current) =>
    storedPages(() => (query, ask) => ask({ ...query, tenantId: current() ?? query.tenantId })),
  );
}

/** Mints for the tenant that a request names, if it names one. */
function mintingFor(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  return withRequestValue(tenantOf, (current) =>
    minting(() => (claims, real) => real({ ...claims, tenant_id: current() ?? claims.tenant_id })),
  );
}

/** Concurrent requests for one URL get the answer to the first of them; each needs a valid token, of any tenant. */
function sharedInFlight(): ServerOptions {
  return middleware(() => {
    const inFlight = new Map<string, Promise<ServiceAnswer>>();
    return async (request, next) => {
      if (!isScreenings(request)) return next(request);
      const earlier = inFlight.get(request.path);
      // Simulates the latency of a call to another service, so that requests overlap.
      const own = sleep(20).then(() => next(request));
      if (!earlier) inFlight.set(request.path, own);
      const [answer, shared] = await Promise.all([own, earlier]);
      if (!earlier) inFlight.delete(request.path);
      const areVerified = [answer, shared].every((one) => one && [200, 403].includes(one.status));
      return areVerified ? shared! : answer;
    };
  });
}

/** Takes the tenant that a request names for the one of its token. */
export function claiming(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  return withRequestValue(tenantOf, (current) =>
    verified((claims) => ({ ...claims, tenant_id: current() ?? claims.tenant_id })),
  );
}

/** Serves any path where a request names the tenant of its token elsewhere. */
function comparedWithToken(tenantOf: (request: ServiceRequest) => string | undefined): ServerOptions {
  return accepting('forbidden', (request) => tenantOf(request) === payloadOf(tokenOf(request))?.tenant_id);
}

/** Replaces the middle item of a page by a screening of the second tenant. */
function foreignScreening(
  rewritten: boolean,
  onPage: (query: PageQuery) => boolean = () => true,
): ServerOptions {
  return storedPages(() => async (query, ask) => {
    const page = await ask(query);
    const middle = page.items[page.items.length >> 1];
    if (page.items.length < 5 || !middle || !onPage(query)) return page;
    const { fromId: _, ...window } = query;
    const { items } = await ask({ ...window, tenantId: TENANTS.secondTenant, pageSize: 1 });
    const [stranger] = items;
    if (!stranger) return page;
    const json = rewritten
      ? stranger.json.replace(/"tenantId":"[^"]*"/, `"tenantId":"${query.tenantId}"`)
      : stranger.json;
    return { ...page, items: page.items.map((item) => (item === middle ? { ...stranger, json } : item)) };
  });
}
