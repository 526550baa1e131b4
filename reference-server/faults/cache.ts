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

const keyWithout =
  (...forgotten: string[]) =>
  ({ path }: ServiceRequest, query: URLSearchParams): string => {
    for (const name of forgotten) query.delete(name);
    return `${path.split('?')[0]} ${query}`;
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
    'a cache key without the tenant, for empty pages': full(
      cache(
        (_, query) => `${query}`,
        true,
        ({ body }) => String(body).startsWith('{"items":[]'),
      ),
    ),
  }),
  ...fails({ '4.2-offsets': /items|item \d+/ })({
    'a cache key without offsets': cache((request, query) => {
      for (const name of ['from', 'to'])
        query.set(name, (query.get(name) ?? '').replace(/(Z|[+-]\d\d:\d\d)$/i, ''));
      return keyWithout()(request, query);
    }),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'a cache before authentication': cache(keyWithout(), false),
  }),
];
