/** Breaches of what is recommended: each warns, and the verdict stays what it was. */
import { cutInstant, parseInstant, type Instant } from '../../engine/data/instant.ts';
import { errorAnswer } from '../http/http.ts';
import {
  claims,
  instead,
  isScreenings,
  isTokenRequest,
  middleware,
  nextUrls,
  queryOf,
  refusals,
  requests,
  storedPages,
  tokenBody,
  withHeader,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { onTheirWay, rows } from './rows.ts';

const always = (text: string): Instant => parseInstant(text) as Instant;

/** bearer, BEARER … but not Bearer. */
const isOtherwiseSpelled = (authorization: string): boolean =>
  /^bearer /i.test(authorization) && !authorization.startsWith('Bearer ');

export const recommended: readonly Fault[] = [
  {
    name: 'tokens of half an hour less a margin: expires_in 3597',
    trips: { '2.1-expires_in-3600': /3600 for a new token/ },
    server: tokenBody((body) => ({ ...body, expires_in: 3_597 })),
  },
  {
    name: 'new tokens are backdated by a minute: expires_in 3540',
    trips: { '2.1-expires_in-3600': /3600 for a new token/ },
    server: {
      ...claims(({ iat, exp, ...original }) => ({
        ...original,
        iat: Number(iat) - 60,
        exp: Number(exp) - 60,
      })),
      ...tokenBody((body) => ({ ...body, expires_in: Number(body['expires_in']) - 60 })),
    },
  },
  {
    name: 'sub with a suffix of the identity provider',
    trips: { '2.2-sub-client': /the client_id/ },
    server: claims((original) => ({ ...original, sub: `${String(original['sub'])}@clients` })),
  },
  {
    name: 'next is a relative reference',
    trips: { '2.4-next-absolute': /an absolute URL/ },
    server: nextUrls((url) => `${url.pathname}${url.search}`),
  },
  {
    name: 'a full page has next, even if nothing follows',
    trips: { '2.4-next-no-empty-page': /an empty page/ },
    server: onTheirWay((page, query) => ({ ...page, more: page.items.length === query.pageSize })),
  },
  {
    name: 'pages of at most five hundred items',
    trips: { '2.4-full-pages': /items on a page with next/ },
    large: true,
    server: storedPages(() => (query, ask) => ask({ ...query, pageSize: Math.min(query.pageSize, 500) })),
  },
  {
    name: 'GET mints a token',
    trips: { '4.1-post-only': /no token/ },
    server: fromTokenQuery('GET'),
  },
  {
    name: 'credentials in the query mint a token',
    trips: { '4.1-no-query-credentials': /no token/ },
    server: fromTokenQuery('POST'),
  },
  {
    name: 'nanoseconds of from and to are cut off',
    trips: { '4.2-fractions-finer': /item \d+/ },
    server: rows({
      exists: ({ at }) => at.fraction.length <= 6,
      read: (text) => cutInstant(always(text), 6),
    }),
    target: ({ dataset: _, secondDataset: __, ...target }) => target,
  },
  {
    name: 'lower-case t and z are refused',
    trips: { '4.2-lowercase': /200.*invalid_time_range/ },
    server: instead((request) =>
      ['from', 'to'].some((name) => /[tz]/.test(queryOf(request).get(name) ?? '')) &&
      parseInstant(queryOf(request).get('from') ?? '')
        ? errorAnswer(400, 'invalid_time_range', 'not RFC 3339')
        : undefined,
    ),
  },
  {
    name: 'the scheme must be Bearer with its capital',
    trips: { '5-scheme-case': /200.*401/ },
    server: requests((request) =>
      isScreenings(request) && isOtherwiseSpelled(request.headers['authorization'] ?? '')
        ? { ...request, headers: { ...request.headers, authorization: 'Unknown x' } }
        : request,
    ),
  },
  {
    name: 'a 401 of the REST API without WWW-Authenticate',
    trips: { '5-challenge': /WWW-Authenticate/ },
    server: refusals([401], (answer) => withHeader(answer, 'www-authenticate', undefined)),
  },
  {
    name: 'Retry-After is a second and the limit lasts four',
    trips: { '7.2-retry-after-honest': /served after the 1 s/ },
    server: {
      rateLimit: { limit: 150, windowMs: 4_000, algorithm: 'sliding-window' },
      ...refusals([429], (answer) => withHeader(answer, 'retry-after', '1')),
    },
    target: (target) => ({ ...target, rateLimit: { maxRequests: 400, maxSeconds: 20 } }),
  },
];

function fromTokenQuery(method: string): NonNullable<Fault['server']> {
  return middleware(() => (request, next) => {
    const query = queryOf(request);
    if (!isTokenRequest(request) || request.method !== method || !query.has('client_secret'))
      return next(request);
    return next({
      ...request,
      method: 'POST',
      path: request.path.split('?')[0] ?? '',
      headers: { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from(query.toString()),
    });
  });
}
