/** Right servers under strain: more load than they take, restarts, a client that another user has locked out. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isScreenings, isTokenRequest, middleware, oauthError, withHeader } from '../run/alter.ts';
import { errorAnswer, type ServiceAnswer } from '../http/http.ts';
import type { Variant } from './variant.ts';

const unavailable = (): ServiceAnswer =>
  withHeader(errorAnswer(503, 'service_unavailable', 'try again'), 'retry-after', '1');

export const overloaded: readonly Variant[] = [
  {
    name: '503 with Retry-After while more than two requests are in flight',
    server: middleware(() => {
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
  },
];

/** From its first request on, one second in each period answers so. */
const nowAndThen = (periodMs: number, answer: () => ServiceAnswer): Variant['server'] =>
  middleware(() => {
    const startedAtMs = Date.now();
    return (request, next) => {
      const at = (Date.now() - startedAtMs) % periodMs;
      return isScreenings(request) && at > periodMs - 1_000 ? answer() : next(request);
    };
  });

export const restarted: readonly Variant[] = [
  {
    name: 'a rolling restart: 503 for one second in every eight',
    server: nowAndThen(8_000, () => errorAnswer(503, 'service_unavailable', 'restarting')),
  },
];

export const lockedByOthers: readonly Variant[] = [
  {
    name: 'another user of the client locks it out for three seconds, from its fourth token request on',
    server: middleware(() => {
      let sent = 0;
      let untilMs = 0;
      return (request, next) => {
        if (!isTokenRequest(request)) return next(request);
        if (++sent === 4) untilMs = Date.now() + 3_000;
        return Date.now() < untilMs
          ? withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic realm="token endpoint"')
          : next(request);
      };
    }),
  },
];
