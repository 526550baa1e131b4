/** Response caches whose key lacks a part of the request. */
import type { ServiceAnswer } from '../http/http.ts';
import { isScreenings, middleware, queryOf } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { full, PAGES, REFUSALS, theme, type Fault } from './fault.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, ...REFUSALS]);

interface Details {
  /** The service, with its authentication, runs before the cache. Default: true. */
  readonly isGuarded?: boolean;
  readonly isKept?: (answer: ServiceAnswer, query: URLSearchParams) => boolean;
}

/** Caches pages by a key that is made of the path and its query. */
export const cache = (
  keyOf: (path: string, query: URLSearchParams) => string,
  { isGuarded = true, isKept = () => true }: Details = {},
): ServerOptions =>
  middleware(() => {
    const kept = new Map<string, ServiceAnswer>();
    return async (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const query = queryOf(request);
      const key = keyOf(request.path.split('?')[0]!, new URLSearchParams(query));
      const held = kept.get(key);
      if (held && !isGuarded) return held;
      const answer = await next(request);
      if (answer.status !== 200) return answer;
      if (!held && isKept(answer, query)) kept.set(key, answer);
      return held ?? answer;
    };
  });

const withoutTenant = (_: string, query: URLSearchParams): string => `${query}`;

export const cached: readonly Fault[] = [
  ...fails({ '4.2-from_id': /items|item \d+/ })({
    'a cache key with from_id in place of from': cache((path, query) => {
      if (query.has('from_id')) query.delete('from');
      return `${path} ${query}`;
    }),
  }),
  ...fails({ '4.2-r6-next-pageSize': /next with/ })({
    'a cache key without pageSize': cache((path, query) => {
      query.delete('pageSize');
      return `${path} ${query}`;
    }),
    'a cache key that joins pageSize and from_id': cache((path, query) =>
      `${path} ${query}`.replace('&from_id=', ''),
    ),
  }),
  ...failsFull({ '4.2-r3-one-tenant': /only screenings of|other tenant/ })({
    'a cache key without the tenant': cache(withoutTenant),
  }),
  ...failsLater({ '4.2-window': /on the page.*got no items/ })({
    'a cache key without the tenant, for empty pages': full(
      cache(withoutTenant, { isKept: ({ body }) => String(body).startsWith('{"items":[]') }),
    ),
  }),
  ...failsLater({ '4.2-success': /200 after another tenant asked.*403 forbidden/ })({
    'a cache of 403 without the token': full(
      middleware(() => {
        const refused = new Map<string, ServiceAnswer>();
        return async (request, next) => {
          const answer = await next(request);
          if (answer.status === 403) refused.set(request.path, answer);
          return answer.status === 200 ? (refused.get(request.path) ?? answer) : answer;
        };
      }),
    ),
  }),
  ...fails({ '4.2-offsets': /items|item \d+/ })({
    'a cache key without offsets': cache((path, query) =>
      `${path} ${query}`.replace(/(?<=(from|to)=[^&]*)(Z|(%2B|-)\d\d%3A\d\d)(?=&|$)/gi, ''),
    ),
  }),
  ...fails({ '4.2-window': /only items in \[/, '4.2-offsets': /not item/ })({
    'a cache key whose times have only letters and digits': cache((path, query) => {
      for (const name of ['from', 'to']) query.set(name, (query.get(name) ?? '').replace(/\W/g, ''));
      return `${path} ${query}`;
    }),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'a cache before authentication': cache((path, query) => `${path} ${query}`, { isGuarded: false }),
  }),
];
