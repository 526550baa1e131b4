/** Correct servers in difficulties: overload, restarts, and a client that another user has locked out. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  answers,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { variants, type Variant } from './variant.ts';

const unavailable = (): ServiceAnswer => withHeader(refusal('503 service_unavailable'), 'retry-after', '1');

export const overloaded = variants({
  '503 with Retry-After while more than two requests are in flight': middleware(() => {
    let inFlight = 0;
    return async (request, next) => {
      if (!isScreenings(request)) return next(request);
      try {
        if (++inFlight > 2) return unavailable();
        await sleep(5);
        return await next(request);
      } finally {
        inFlight--;
      }
    };
  }),
});

/** Answers every request in the last second of each period with `answer`; periods start with the server. */
const periodically = (periodMs: number, answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    const startedAtMs = Date.now();
    return (request, next) => {
      const at = (Date.now() - startedAtMs) % periodMs;
      return isScreenings(request) && at > periodMs - 1_000 ? answer() : next(request);
    };
  });

const COLD_START_MS = 11_000;

export const restarted = variants({
  'a rolling restart: 503 for one second in every eight': periodically(8_000, () =>
    refusal('503 service_unavailable'),
  ),
  'an instance that starts with its first request, which takes 11 s': middleware(() => {
    let isStarted = false;
    return async (request, next) => {
      if (isStarted) return next(request);
      isStarted = true;
      await sleep(COLD_START_MS);
      return next(request);
    };
  }),
});

export const lockedByOthers = variants({
  'another user of the client locks it out for three seconds, from its fourth token request on': middleware(
    () => {
      let sent = 0;
      let untilMs = 0;
      return (request, next) => {
        if (!isTokenRequest(request)) return next(request);
        if (++sent === 4) untilMs = Date.now() + 3_000;
        return Date.now() < untilMs ? invalidClient() : next(request);
      };
    },
  ),
});

const dated = (name: string, offMs: number): Variant => ({
  name: `a proxy whose Date is ${name}, with tokens that are right`,
  server: answers((answer) => withHeader(answer, 'date', new Date(Date.now() + offMs).toUTCString())),
});

export const datedAhead: readonly Variant[] = [dated('ten minutes ahead', 600_000)];
export const datedBehind: readonly Variant[] = [dated('ten minutes late', -600_000)];

export const dailyQuota: readonly Variant[] = [
  {
    name: 'a quota of 150 requests for pages of one item that asks to wait two days',
    server: middleware(() => {
      let bucket = { tokens: 150, atMs: Date.now() };
      return (request, next) => {
        if (!isScreenings(request) || !/pageSize=1(&|$)/.test(request.path)) return next(request);
        const nowMs = Date.now();
        bucket = { tokens: Math.min(150, bucket.tokens + (nowMs - bucket.atMs) / 20) - 1, atMs: nowMs };
        if (bucket.tokens >= 0) return next(request);
        bucket.tokens += 1;
        return jsonAnswer(429, { code: 'rate_limited' }, [['retry-after', '172800']]);
      };
    }),
    target: (target) => ({ ...target, rateLimit: { maxRequests: 600, maxSeconds: 20 } }),
  },
];

const cache = (name: string, saysAge: boolean): Variant => ({
  name: `a cache of two seconds by URL and token ${name}`,
  server: middleware(() => {
    const kept = new Map<string, { readonly answer: ServiceAnswer; readonly atMs: number }>();
    return async (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const key = `${request.path} ${request.headers['authorization']} ${request.headers['accept-encoding']}`;
      const held = kept.get(key);
      const ageMs = held ? Date.now() - held.atMs : Infinity;
      if (ageMs < 2_000)
        return saysAge ? withHeader(held!.answer, 'age', String(Math.ceil(ageMs / 1000))) : held!.answer;
      const answer = await next(request);
      if (answer.status === 200) kept.set(key, { answer, atMs: Date.now() });
      return answer;
    };
  }),
  target: (target) => ({ ...target, rateLimit: { maxRequests: 600, maxSeconds: 20 } }),
});

export const cached: readonly Variant[] = [cache('that says no Age', false)];
export const cachedWithAge: readonly Variant[] = [cache('that says its Age', true)];
