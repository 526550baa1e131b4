/** Response caches whose key lacks a part of the request. */
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { isScreenings, middleware, queryOf } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { full, PAGES, REFUSALS, theme, type Fault } from './fault.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, ...REFUSALS]);

/** Caches pages by key. `guarded`: the service, with its authentication, runs before the cache. */
function cache(
  keyOf: (request: ServiceRequest, query: URLSearchParams) => string,
  guarded = true,
  isKept: (answer: ServiceAnswer) => boolean = () => true,
): ServerOptions {
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

/** A key of instants without a part of their text. */
const respelt =
  (dropped: RegExp) =>
  (request: ServiceRequest, query: URLSearchParams): string => {
    for (const name of ['from', 'to']) query.set(name, (query.get(name) ?? '').replace(dropped, ''));
    return keyWithout()(request, query);
  };

export const cached: readonly Fault[] = [
  ...fails({ '4.2-r6-next-pageSize': /next with/ })({
    'a cache key without pageSize': cache(keyWithout('pageSize')),
  }),
  ...fails({ '4.2-from_id': /strictly after|items/ })({
    'a cache key without from_id': cache(keyWithout('from_id')),
  }),
  ...failsFull({ '4.2-r3-one-tenant': /only screenings of|other tenant/ })({
    'a cache key without the tenant': cache((_, query) => `${query}`),
  }),
  ...failsLater({ '4.2-window': /on the page.*got no items/ })({
    'a cache key without the tenant, for empty pages': full(cache((_, query) => `${query}`, true, isEmpty)),
  }),
  ...fails({ '4.2-offsets': /items|item \d+/ })({
    'a cache key without offsets': cache(respelt(/(Z|[+-]\d\d:\d\d)$/i)),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'a cache before authentication': cache(keyWithout(), false),
  }),
];
