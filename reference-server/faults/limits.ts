/** Sections 7.2 and 8: the rate limit. */
import type { Target } from '../../engine/target/target.ts';
import { errorAnswer } from '../http/http.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { ServerOptions } from '../run/start.ts';
import { refusals, withHeader } from '../run/alter.ts';
import type { Fault } from './fault.ts';

/** Requirements that a rejected valid request breaks, for any check. */
const PAGES = [
  '7.2-invalid_request',
  '7.2-invalid_time_range',
  '7.2-page_size_out_of_range',
  '7.2-not_found',
  '7.2-forbidden',
  '7.2-unauthenticated',
  '4.2-from-required',
  '4.2-to-required',
  '4.2-r2-inverted',
] as const;

/** Low enough to be reached on a slow machine. */
const BUCKET: RateLimit = { limit: 20, windowMs: 1_000, algorithm: 'token-bucket', burst: 150 };
const probing =
  (maxRequests = 600) =>
  (target: Target): Target => ({ ...target, rateLimit: { maxRequests, maxSeconds: 20 } });

const limited = (
  name: string,
  trips: Fault['trips'],
  server: ServerOptions,
  mayTrip?: Fault['mayTrip'],
  rateLimit = BUCKET,
): Fault => ({
  name,
  trips,

  server: { rateLimit, ...server },
  target: probing(),
  ...(mayTrip ? { mayTrip } : {}),
});

export const limits: readonly Fault[] = [
  limited(
    'a 429 with another code',
    { '7.2-rate_limited': /429 rate_limited/ },
    refusals([429], (answer) => ({ ...answer, body: '{"code":"too_many_requests"}' })),
    ['7.2-body'],
  ),
  limited(
    'a 429 without Retry-After',
    { '7.2-retry-after': /Retry-After: none/ },
    refusals([429], (answer) => withHeader(answer, 'retry-after', undefined)),
  ),
  limited(
    'Retry-After with a unit',
    { '7.2-retry-after': /Retry-After: 1 seconds/ },
    refusals([429], (answer) => withHeader(answer, 'retry-after', '1 seconds')),
  ),
  limited(
    'Retry-After of a fraction of a second',
    { '7.2-retry-after': /Retry-After: 0\.5/ },
    refusals([429], (answer) => withHeader(answer, 'retry-after', '0.5')),
  ),
  ...(
    [
      ['an epoch in place of the seconds', () => String(Math.floor(Date.now() / 1000) + 1)],
      ['a wait of a year', () => '31536000'],
      ['a date of a year ahead', () => new Date(Date.now() + 31_536_000_000).toUTCString()],
      ['a negative wait', () => '-1'],
      ['an RFC 3339 date', () => new Date().toISOString()],
    ] as const
  ).map(([name, value]) =>
    limited(
      `Retry-After is ${name}`,
      { '7.2-retry-after': /of at most a month/ },
      refusals([429], (answer) => withHeader(answer, 'retry-after', value())),
      [...PAGES, '4.2-success', '4.2-r5-exactly-once'],
    ),
  ),
  {
    ...limited(
      'past the limit 503 instead of 429',
      { '7.2-no-unprovoked-5xx': /no 5xx.*503/, '7.2-rate_limited': /limit_req of nginx/ },
      refusals([429], () => errorAnswer(503, 'service_unavailable', 'too much')),
      [
        '4.2-success',
        '4.2-r5-exactly-once',
        '7.2-retry-after',
        '7.2-invalid_request',
        '7.2-invalid_time_range',
        '7.2-page_size_out_of_range',
        ...PAGES,
      ],
      { limit: 25, windowMs: 1_000, algorithm: 'token-bucket', burst: 60 },
    ),
    target: probing(300),
    needsNeighbours: true,
  },
];
