/** Sections 7.2 and 8: the rate limit. */
import type { ServiceAnswer } from '../http/http.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { ServerOptions } from '../run/start.ts';
import { emptyPage, html, isScreenings, middleware, refusal, refusals, withHeader } from '../run/alter.ts';
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
      400,
    ),
  }),
];
