/** Response caches whose key forgets something. */
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { isScreenings, middleware, queryOf } from '../run/alter.ts';
import type { Fault } from './fault.ts';

const WALK = [
  '2.3-id-stable',
  '2.3-tenantId',
  '2.4-items',
  '2.4-next',
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-from_id',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-r1-zero-width',
  '4.2-r3-one-tenant',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-r6-next-to',
  '4.2-r6-next-pageSize',
  '4.2-r6-next-from',
  '4.2-r6-next-from_id',
  '4.2-r6-next-target',
  '4.2-pageSize-default',
  '4.2-repeatable',
] as const;

const UNGUARDED = [
  '5-forged',
  '5-scheme',
  '5-garbage',
  '5-tampered',
  '5-expired',
  '5-forbidden',
  '5-forbidden-unknown',
  '7.2-unauthenticated',
] as const;

/** Pages are kept by key. `guarded`: authorization is checked before the cache. */
function cache(keyOf: (request: ServiceRequest, query: URLSearchParams) => string, guarded = true) {
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
      kept.set(key, answer);
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

const respelt =
  (change: (text: string) => string) =>
  ({ path }: ServiceRequest, query: URLSearchParams): string => {
    for (const name of ['from', 'to']) query.set(name, change(query.get(name) ?? ''));
    return `${path.split('?')[0]} ${query}`;
  };

export const cached: readonly Fault[] = [
  {
    name: 'a cache key without pageSize',
    trips: { '4.2-r6-next-pageSize': /next with/ },
    mayTrip: WALK,
    server: cache(keyWithout('pageSize')),
  },
  {
    name: 'a cache key without from_id',
    trips: { '4.2-from_id': /strictly after|items/ },
    mayTrip: WALK,
    server: cache(keyWithout('from_id')),
  },
  {
    name: 'a cache key without to',
    trips: { '4.2-r6-next-to': /next with the request's to/ },
    mayTrip: [...WALK, '4.2-success'],
    server: cache(keyWithout('to')),
  },
  {
    name: 'a cache key without the tenant',
    trips: { '4.2-r3-one-tenant': /only screenings of|other tenant/ },
    mayTrip: WALK,
    bare: false,
    server: cache((_, query) => `${query}`),
  },
  {
    name: 'a cache key that drops the offsets',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WALK,
    server: cache(respelt((text) => text.replace(/(Z|[+-]\d\d:\d\d)$/i, ''))),
  },
  {
    name: 'a cache key that drops the fractions',
    trips: { '4.2-fractions': /item \d+/ },
    mayTrip: WALK,
    server: cache(respelt((text) => text.replace(/\.\d+/, ''))),
  },
  {
    name: 'a cache in front of the authentication',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    mayTrip: UNGUARDED,
    server: cache(keyWithout(), false),
  },
  {
    name: 'a cache in front of the authentication keeps later pages of 1000',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    mayTrip: UNGUARDED,
    server: cache(
      (request, query) =>
        query.has('from_id') && query.get('pageSize') === '1000'
          ? keyWithout()(request, query)
          : JSON.stringify([request.path, request.headers['authorization'], request.headers['x-request-id']]),
      false,
    ),
  },
];
