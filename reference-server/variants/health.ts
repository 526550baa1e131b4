/** Correct servers in difficulties: overload, restarts, and a client that another user has locked out. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  answers,
  asPages,
  counting,
  crowded,
  html,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  queryOf,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { every, hasParameter, type Where } from '../run/conditions.ts';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { createRateLimiter, type RateLimit } from '../http/rate-limit.ts';
import type { ServerOptions } from '../run/start.ts';
import { answersFor } from './accidents.ts';
import { probing } from '../faults/fault.ts';
import type { Groups } from './variant.ts';

const unavailable = (): ServiceAnswer => refusal('503 service_unavailable');

/** A Date header that is off; tokens are right. */
export const dated = (offMs: number): ServerOptions =>
  answers((answer) => withHeader(answer, 'date', new Date(Date.now() + offMs).toUTCString()));

export const cache = (hasAge: boolean, forMs = 2_000, where = (_: ServiceRequest): boolean => true) => ({
  server: middleware(() => {
    const kept = new Map<string, { readonly answer: ServiceAnswer; readonly atMs: number }>();
    return async (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET' || !where(request)) return next(request);
      const key = `${request.path} ${request.headers['authorization']} ${request.headers['accept-encoding']}`;
      const held = kept.get(key);
      const ageMs = held ? Date.now() - held.atMs : Infinity;
      if (held && ageMs < forMs)
        return hasAge ? withHeader(held.answer, 'age', String(Math.ceil(ageMs / 1000))) : held.answer;
      const answer = await next(request);
      if (answer.status === 200) kept.set(key, { answer, atMs: Date.now() });
      return answer;
    };
  }),
  // With the other requests more than the request limit of a run, which the rate-limit probe does not use.
  target: probing(5_000),
});

/** Answers matching requests with `answer` where the bucket is empty. */
export const beyond = (
  bucket: Pick<RateLimit, 'limit' | 'burst'>,
  answer: () => ServiceAnswer,
  where: Where,
  now = Date.now,
): ServerOptions =>
  middleware(() => {
    const quota = createRateLimiter({ ...bucket, windowMs: 1_000, algorithm: 'token-bucket' });
    return (request, next) =>
      where(request, queryOf(request)) && quota('all', now()) !== undefined ? answer() : next(request);
  });

export const health: Groups = {
  'that serves two requests concurrently': {
    '503 with Retry-After while more than two requests are in flight': crowded(
      asPages,
      { most: 2, latencyMs: 5 },
      () => withHeader(unavailable(), 'retry-after', '1'),
    ),
    'another user of the client locks it out for three seconds after three token requests': answersFor(
      4,
      3_000,
      invalidClient,
      { matches: isTokenRequest },
    ),
  },
  'that recycles its workers': {
    // As limit_req of nginx, whose default is 503.
    'a limiter before the token endpoint answers 503 beyond 15 requests a second': beyond(
      { limit: 15, burst: 10 },
      () => html(503, 'Service Temporarily Unavailable'),
      isTokenRequest,
    ),
    'one request in 250 is 503, and served when it is sent again': {
      server: counting(
        (asked, request, next) =>
          asked % 250 === 0 ? withHeader(unavailable(), 'retry-after', '1') : next(request),
        isScreenings,
      ),
      target: probing(2_000),
    },
  },
  'that is restarted': {
    'a rolling restart of three instances: 503 for one second, every eight seconds': middleware(() => {
      const startedAtMs = Date.now();
      return (request, next) => {
        const ms = Date.now() - startedAtMs;
        return isScreenings(request) && ms < 24_000 && ms % 8_000 > 7_000 ? unavailable() : next(request);
      };
    }),
    'an instance that starts with its first request, which takes 11 s': counting(
      async (asked, request, next) => {
        if (asked === 1) await sleep(11_000);
        return next(request);
      },
    ),
    'a proxy whose Date is ten minutes late': dated(-600_000),
  },
  'with a quota and a wrong Date': {
    'a quota of 300 requests for pages of one item that asks to wait two months': {
      server: beyond(
        { limit: 50, burst: 300 },
        () => withHeader(refusal('429 rate_limited'), 'retry-after', '5184000'),
        every(isScreenings, hasParameter('pageSize', /^1$/)),
      ),
      target: probing(600),
    },
    'a proxy whose Date is ten minutes ahead': dated(600_000),
  },
  // Its limiter names a date in Retry-After.
  'with a rate limit': { 'a Date that is ten minutes late, with dates in Retry-After': dated(-600_000) },
  'with a cache': { 'a cache of two seconds by URL and token, without Age': cache(false) },
  'on two replicas': { 'a cache of two seconds by URL and token, in front of both': cache(false) },
  'with a cache that says Age': { 'a cache of two seconds by URL and token, with Age': cache(true) },
};
