/** Response caches whose key lacks a part of the request. */
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { isScreenings, middleware, queryOf } from '../run/alter.ts';
import { pageFaults, refusalFaults, type Fault } from './fault.ts';

/** Caches pages by key. `guarded`: the service, with its authentication, runs before the cache. */
function cache(
  keyOf: (request: ServiceRequest, query: URLSearchParams) => string,
  guarded = true,
  isKept: (answer: ServiceAnswer) => boolean = () => true,
) {
  return middleware(() => {
    const kept = new Map<string, ServiceAnswer>();
    return async (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const key = keyOf(request, queryOf(request));
      const held = kept.get(key);
      if (held && !guarded) return held;
      const answer = await next(request);
      if (answer.status !== 200) return answer;
      if (held) return held;
      if (isKept(answer)) kept.set(key, answer);
      return answer;
    };
  });
}

const isEmpty = ({ body }: ServiceAnswer): boolean => String(body).startsWith('{"items":[]');

const keyWithout =
  (...forgotten: string[]) =>
  ({ path }: ServiceRequest, query: URLSearchParams): string => {
    for (const name of forgotten) query.delete(name);
    return `${path.split('?')[0]} ${query}`;
  };

const respelt =
  (dropped: RegExp) =>
  ({ path }: ServiceRequest, query: URLSearchParams): string => {
    for (const name of ['from', 'to']) query.set(name, (query.get(name) ?? '').replace(dropped, ''));
    return `${path.split('?')[0]} ${query}`;
  };

export const cached: readonly Fault[] = [
  ...pageFaults({ '4.2-r6-next-pageSize': /next with/ })({
    'a cache key without pageSize': cache(keyWithout('pageSize')),
  }),
  ...pageFaults({ '4.2-from_id': /strictly after|items/ })({
    'a cache key without from_id': cache(keyWithout('from_id')),
  }),
  ...pageFaults({ '4.2-r6-next-to': /next with the request's to/ })({
    'a cache key without to': cache(keyWithout('to')),
  }),
  ...pageFaults(
    { '4.2-r3-one-tenant': /only screenings of|other tenant/ },
    { bare: false },
  )({ 'a cache key without the tenant': cache((_, query) => `${query}`) }),
  ...pageFaults(
    { '4.2-window': /on the page.*got no items/ },
    { bare: false, needsNeighbours: true },
  )({
    'empty pages are kept for every tenant': cache((_, query) => `${query}`, true, isEmpty),
    'empty pages are kept without from_id': cache(keyWithout('from_id'), true, isEmpty),
  }),
  ...pageFaults({ '4.2-offsets': /items|item \d+/ })({
    'a cache key that drops the offsets': cache(respelt(/(Z|[+-]\d\d:\d\d)$/i)),
  }),
  ...pageFaults({ '4.2-fractions': /item \d+/ })({
    'a cache key that drops the fractions': cache(respelt(/\.\d+/)),
  }),
  ...refusalFaults({ '5-missing': /401 unauthenticated.*200/ })({
    'a cache in front of the authentication': cache(keyWithout(), false),
    'a cache in front of the authentication keeps later pages of 1000': cache(
      (request, query) =>
        query.has('from_id') && query.get('pageSize') === '1000'
          ? keyWithout()(request, query)
          : JSON.stringify([request.path, request.headers['authorization'], request.headers['x-request-id']]),
      false,
    ),
  }),
];
