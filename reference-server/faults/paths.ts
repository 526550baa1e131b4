/** Section 5: tenants that are named otherwise than by their UUID. */
import type { ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { requests } from '../run/alter.ts';
import { payloadOf } from './authentication.ts';
import type { Fault } from './fault.ts';

/** Takes a path's tenant for the token's own where it is like it. */
function taken(isLike: (shown: string, own: string) => boolean): ServerOptions {
  return requests((request: ServiceRequest) => {
    const own = payloadOf((request.headers['authorization'] ?? '').replace(/^Bearer /, ''))?.tenant_id;
    const path = request.path.replace(
      /(\/tenants\/)([^/?]+)(?=\/screenings(\?|$))/,
      (whole, before: string, shown: string) =>
        own !== undefined && isLike(shown.toLowerCase(), own) ? `${before}${own}` : whole,
    );
    return { ...request, path };
  });
}

const SERVED = { '5-forbidden-unknown': /no page at \/tenants\/.*200/ } as const;

export const paths: readonly Fault[] = [
  { name: 'me is the tenant of the token', trips: SERVED, server: taken((shown) => shown === 'me') },
  {
    name: 'a star stands for the own tenant',
    trips: SERVED,
    server: taken((shown) => shown === '*'),
  },
  {
    name: 'the UUID is compared by its last group',
    trips: SERVED,
    server: taken((shown, own) => shown.endsWith(own.slice(-12)) && shown.length === own.length),
  },
  {
    name: 'the UUID is searched for in the path',
    trips: SERVED,
    server: taken((shown, own) => shown.includes(own)),
  },
  {
    name: 'the UUID is read without regard to hyphens and braces',
    trips: SERVED,
    server: taken((shown, own) => shown.replace(/%7b|%7d|[^0-9a-f]/g, '') === own.replaceAll('-', '')),
  },
];
