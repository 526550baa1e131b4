/** Violations of recommendations: each gives a warning and leaves the verdict as it is. */
import { cutInstant, instant, type Instant } from '../../engine/data/instant.ts';
import {
  answering,
  authorized,
  isScreenings,
  isTokenRequest,
  middleware,
  nextUrls,
  queryOf,
  refusals,
  storedPages,
  tokenClaims,
  tokenMembers,
  windowOf,
  withHeader,
} from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { tripping, type Fault } from './fault.ts';
import { alterStored, rows } from './rows.ts';

/** A store whose instants have microseconds; `change` cuts or rounds a parameter. */
const inMicroseconds = (parameter: 'from' | 'to', change: (at: Instant) => Instant): ServerOptions =>
  rows({
    exists: ({ at }) => at.fraction.length <= 6,
    read: (text, name) => (name === parameter ? change(instant(text)) : instant(text)),
  });

export const recommended: readonly Fault[] = [
  ...tripping({ '2.1-expires_in-3600': /3600 for a new token/ })({
    'tokens of half an hour less a margin: expires_in 3597': tokenMembers(() => ({ expires_in: 3_597 })),
    'new tokens are backdated by a minute: expires_in 3540': {
      ...tokenClaims(({ iat, exp }) => ({ iat: Number(iat) - 60, exp: Number(exp) - 60 })),
      ...tokenMembers(({ expires_in }) => ({ expires_in: Number(expires_in) - 60 })),
    },
  }),
  ...tripping({ '2.2-sub-client': /the client_id/ })({
    'sub with a suffix of the identity provider': tokenClaims(({ sub }) => ({
      sub: `${String(sub)}@clients`,
    })),
  }),
  ...tripping({ '2.4-next-absolute': /an absolute URL/ })({
    'next is a relative reference': nextUrls((url) => `${url.pathname}${url.search}`),
  }),
  ...tripping({ '2.4-next-no-empty-page': /an empty page/ })({
    'a full page has next, even if nothing follows': alterStored((page, query) => ({
      ...page,
      more: page.items.length === query.pageSize,
    })),
  }),
  ...tripping(
    { '2.4-full-pages': /items on a page with next/ },
    { large: true },
  )({
    'pages of at most five hundred items': storedPages(
      () => (query, ask) => ask({ ...query, pageSize: Math.min(query.pageSize, 500) }),
    ),
  }),
  ...tripping({ '4.1-post-only': /no token/ })({ 'GET mints a token': fromTokenQuery('GET') }),
  ...tripping({ '4.1-no-query-credentials': /no token/ })({
    'credentials in the query mint a token': fromTokenQuery('POST'),
  }),
  ...tripping(
    { '4.2-fractions-finer': /item \d+/ },
    { target: ({ dataset: _, secondDataset: __, ...target }) => target },
  )({
    'nanoseconds of from are cut off': inMicroseconds('from', (at) => cutInstant(at, 6)),
    'nanoseconds of to are cut off': inMicroseconds('to', (at) => cutInstant(at, 6)),
  }),
  ...tripping({ '4.2-lowercase': /200.*invalid_time_range/ })({
    'lower-case t and z are refused': answering(
      '400 invalid_time_range',
      (query) =>
        ['from', 'to'].some((name) => /[tz]/.test(query.get(name) ?? '')) && windowOf(query)[0] !== undefined,
    ),
  }),
  ...tripping({ '5-scheme-case': /200.*401/ })({
    'the scheme must be Bearer with its capital': authorized((value) =>
      /^bearer /i.test(value) && !value.startsWith('Bearer ') ? 'Unknown x' : value,
    ),
  }),
  ...tripping({ '5-challenge': /WWW-Authenticate/ })({
    'a 401 of the REST API without WWW-Authenticate': refusals([401], (answer) =>
      withHeader(answer, 'www-authenticate', undefined),
    ),
  }),
  ...tripping(
    { '7.2-retry-after-honest': /served after the 1 s/ },
    { target: (target) => ({ ...target, rateLimit: { maxRequests: 400, maxSeconds: 20 } }) },
  )({
    'Retry-After is a second and the limit lasts four': {
      rateLimit: { limit: 150, windowMs: 4_000, algorithm: 'sliding-window' },
      // Rejects every request for four seconds after the first 429, whatever the rate of requests.
      ...middleware(() => {
        let rejected: { readonly answer: ServiceAnswer; readonly untilMs: number } | undefined;
        return async (request, next) => {
          if (!isScreenings(request)) return next(request);
          if (rejected && Date.now() < rejected.untilMs) return rejected.answer;
          const answer = await next(request);
          if (answer.status !== 429) return answer;
          rejected = { answer: withHeader(answer, 'retry-after', '1'), untilMs: Date.now() + 4_000 };
          return rejected.answer;
        };
      }),
    },
  }),
];

function fromTokenQuery(method: string): ServerOptions {
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
