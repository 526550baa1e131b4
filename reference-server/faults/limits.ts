/** Sections 7.2 and 8: the rate limit. */
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { ServerOptions } from '../run/start.ts';
import {
  asPages,
  both,
  emptyPage,
  header,
  html,
  middleware,
  refusal,
  refusals,
  withHeader,
} from '../run/alter.ts';
import { PAGES, probing, REFUSALS, theme, type Fault } from './fault.ts';
import { brokenAnswer } from './rest-errors.ts';

const { fails } = theme([...REFUSALS, ...PAGES]);

/** Low enough to be exceeded from a slow machine, and too high for other requirements to be affected. */
const BUCKET: RateLimit = { limit: 20, windowMs: 1_000, algorithm: 'token-bucket', burst: 300 };

const probed = (server: ServerOptions, maxRequests = 900) => ({ server, target: probing(maxRequests) });
const limited = (alter: Parameters<typeof refusals>[1], rateLimit = BUCKET): ServerOptions => ({
  rateLimit,
  ...refusals([429], alter),
});
const refusedBy = (alter: Parameters<typeof refusals>[1]) => probed(limited(alter));
const after = (value: () => string | undefined) =>
  refusedBy((answer) => withHeader(answer, 'retry-after', value()));

export interface Guard {
  /** Requests of the same key are counted together. undefined: not guarded. */
  readonly keyOf: (request: ServiceRequest) => string | undefined;
  /** Default: 401. */
  readonly counts?: (answer: ServiceAnswer) => boolean;
  /** The number of counted answers that begins a rejection. */
  readonly threshold: number;
  /** The time within which they are counted. Default: a whole run. */
  readonly withinMs?: number;
  /** Whether a 200 in between sets the count to zero. */
  readonly inARow?: boolean;
  /** How long every request is rejected. */
  readonly forMs: number;
}

/** Rejects every request of a sender for a while after a number of counted answers. */
export const guarded = (guard: Guard, refuse: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    const { keyOf, counts = ({ status }) => status === 401, threshold, withinMs = Infinity } = guard;
    const senders = new Map<string, { atMs: number[]; untilMs: number }>();
    return async (request, next) => {
      const key = keyOf(request);
      if (key === undefined) return next(request);
      const sender = senders.get(key) ?? { atMs: [], untilMs: 0 };
      senders.set(key, sender);
      if (Date.now() < sender.untilMs) return refuse();
      const answer = await next(request);
      if (answer.status === 200 && guard.inARow) sender.atMs = [];
      if (!counts(answer)) return answer;
      sender.atMs = [...sender.atMs.filter((ms) => ms > Date.now() - withinMs), Date.now()];
      if (sender.atMs.length >= threshold) senders.set(key, { atMs: [], untilMs: Date.now() + guard.forMs });
      return answer;
    };
  });

export const limits: readonly Fault[] = [
  ...fails({ '7.2-rate_limited': /429 rate_limited/ })({
    'a 429 has another code': refusedBy((answer) => ({ ...answer, body: '{"code":"too_many_requests"}' })),
  }),
  ...fails({ '7.2-rate_limited': /429 rate_limited.*<h1>/, '7.2-body': /rate_limited.*<h1>/ })({
    'a 429 is HTML': refusedBy(() => html(429, 'Too Many Requests', [['retry-after', '1']])),
  }),
  ...fails({ '7.2-rate_limited': /429 rate_limited beyond a rate limit/ })({
    'rejected requests get an empty page': { ...refusedBy(emptyPage), bare: false },
  }),
  ...fails({
    '7.2-rate_limited': /past the rate limit.*403.*one at a time/,
    '7.2-forbidden': /403 forbidden.*403/,
  })({ 'rejected requests get the 403 of a firewall': refusedBy(() => html(403, 'Forbidden')) }),
  ...fails({
    '7.2-rate_limited': /past the rate limit.*(500|broken connection).*one at a time/,
    '7.2-no-unprovoked-5xx': /past the rate limit/,
  })({
    'rejected requests are 500': refusedBy(() => refusal('500 internal_error')),
    'connections of rejected requests close': refusedBy(brokenAnswer),
  }),
  ...fails({ '7.2-retry-after': /Retry-After: none/ })({ 'a 429 lacks Retry-After': after(() => undefined) }),
  ...fails({ '7.2-retry-after': /Retry-After: 1 seconds/ })({
    'Retry-After has a unit': after(() => '1 seconds'),
  }),
  ...fails({ '7.2-retry-after': /within ten years/ })({
    'Retry-After is in epoch seconds': after(() => String(Math.floor(Date.now() / 1000) + 1)),
    'Retry-After is an RFC 3339 date': after(() => new Date().toISOString()),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx.*503/, '7.2-rate_limited': /limit_req of nginx/ })({
    'rejected requests are 503': {
      ...probed(limited(() => refusal('503 service_unavailable'), { ...BUCKET, limit: 25, burst: 60 })),
      needsNeighbours: true,
    },
  }),
  ...fails({ '7.2-retry-after-honest': /served after the 1 s/ })({
    'Retry-After is shorter than the limit lasts': probed(
      {
        rateLimit: { limit: 150, windowMs: 4_000, algorithm: 'sliding-window' },
        ...both(
          refusals([429], header('retry-after', '1')),
          // Whatever the rate of requests.
          guarded(
            { keyOf: asPages, counts: ({ status }) => status === 429, threshold: 1, forMs: 4_000 },
            () => withHeader(refusal('429 rate_limited'), 'retry-after', '1'),
          ),
        ),
      },
      400,
    ),
  }),
];
