/** Sections 7.2 and 8: the rate limit. */
import type { Target } from '../../engine/target/target.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { ServerOptions } from '../run/start.ts';
import { emptyPage, html, refusal, refusals, withHeader } from '../run/alter.ts';
import { PAGES, REFUSALS, sharing, tripping, type Fault } from './fault.ts';
import { brokenBody } from './rest-errors.ts';

const MAY = { mayTrip: [...REFUSALS, '4.2-success', '4.2-r5-exactly-once', '7.2-retry-after'] } as const;

/** Low enough to be exceeded from a slow machine, and too high for other requirements to be affected. */
const BUCKET: RateLimit = { limit: 20, windowMs: 1_000, algorithm: 'token-bucket', burst: 300 };
const probing =
  (maxRequests: number) =>
  (target: Target): Target => ({ ...target, rateLimit: { maxRequests, maxSeconds: 20 } });
const probed = sharing({ target: probing(900) });

const limited = (alter: Parameters<typeof refusals>[1], rateLimit = BUCKET): ServerOptions => ({
  rateLimit,
  ...refusals([429], alter),
});
const after = (value: () => string | undefined): ServerOptions =>
  limited((answer) => withHeader(answer, 'retry-after', value()));

export const limits: readonly Fault[] = [
  ...probed(
    { '7.2-rate_limited': /429 rate_limited/ },
    { mayTrip: ['7.2-body'] },
  )({
    'a 429 with another code': limited((answer) => ({ ...answer, body: '{"code":"too_many_requests"}' })),
  }),
  ...probed(
    { '7.2-rate_limited': /429 rate_limited beyond a rate limit/ },
    { mayTrip: [...PAGES, ...MAY.mayTrip], bare: false },
  )({
    'past the limit an empty page': limited(() => emptyPage()),
    'past the limit 404': limited(() => refusal('404 not_found')),
  }),
  ...probed(
    { '7.2-rate_limited': /past the rate limit.*403.*one at a time/, '7.2-forbidden': /403 forbidden.*403/ },
    MAY,
  )({ 'past the limit the 403 of a firewall': limited(() => html(403, 'Forbidden')) }),
  ...probed(
    {
      '7.2-rate_limited': /past the rate limit.*(500|broken connection).*one at a time/,
      '7.2-no-unprovoked-5xx': /past the rate limit/,
    },
    MAY,
  )({
    'past the limit 500': limited(() => refusal('500 internal_error')),
    'past the limit connections close': limited(() => ({ status: 200, headers: [], body: brokenBody() })),
  }),
  ...probed({ '7.2-retry-after': /Retry-After: none/ })({
    'a 429 without Retry-After': after(() => undefined),
  }),
  ...probed({ '7.2-retry-after': /Retry-After: 1 seconds/ })({
    'Retry-After with a unit': after(() => '1 seconds'),
  }),
  ...probed({ '7.2-retry-after': /Retry-After: 0\.5/ })({
    'Retry-After of a fraction of a second': after(() => '0.5'),
  }),
  ...probed(
    { '7.2-retry-after': /of at most a month/ },
    MAY,
  )({
    'Retry-After is an epoch in place of the seconds': after(() => String(Math.floor(Date.now() / 1000) + 1)),
    'Retry-After is a wait of a year': after(() => '31536000'),
    'Retry-After is a date of a year ahead': after(() => new Date(Date.now() + 31_536_000_000).toUTCString()),
    'Retry-After is a negative wait': after(() => '-1'),
    'Retry-After is an RFC 3339 date': after(() => new Date().toISOString()),
  }),
  ...tripping(
    { '7.2-no-unprovoked-5xx': /no 5xx.*503/, '7.2-rate_limited': /limit_req of nginx/ },
    { target: probing(300), needsNeighbours: true, ...MAY },
  )({
    'past the limit 503 instead of 429': limited(() => refusal('503 service_unavailable'), {
      limit: 25,
      windowMs: 1_000,
      algorithm: 'token-bucket',
      burst: 60,
    }),
  }),
];
