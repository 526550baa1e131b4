/** Section 5: tenants that are addressed by something other than their UUID. */
import type { ServerOptions } from '../run/start.ts';
import { requests } from '../run/alter.ts';
import { authorizationOf, payloadOf } from './bearer.ts';
import { tripping, type Fault } from './fault.ts';

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
