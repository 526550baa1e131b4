/** Rate limits, failures and final rejections (section 7.2), and a server with the wrong certificate. */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../engine/clock.ts';
import type { ServerOptions } from '../../../reference-server/run/start.ts';
import { TRUST_VARIABLES } from '../client.ts';
import { backoffFindings, EARLY_MS, retryFindings, seriesOf, tooEarly } from '../judge-requests.ts';
import { pageRequests } from '../record.ts';
import { answered, none, reached, situationsOf, unless, type Play, type SituationRow } from '../situation.ts';
import { answering, both, html, refusal, withHeader } from '../../../reference-server/run/alter.ts';
import { atFirst, atPage, pageStep, type PageStep, usual, waiting } from './blocks.ts';
import { several } from '../../render/results.ts';

const LOOK_AT_429 = [
  'what happens on a 429: a wait as long as Retry-After says, then the same URL again',
  'the retry library: whether it knows 429 and reads Retry-After, or goes by its own waits',
];
const LOOK_AT_5XX = [
  'what happens on a 5xx: a wait that doubles from one retry to the next, then the same URL again',
  'the retry library: which statuses it retries, and whether its waits grow',
];

const threeTimes = (error: string): SituationRow => ({
  title: `${parseInt(error)} three times in a row is retried with exponential backoff: the waits grow (jitter is allowed)`,
  lookAt: LOOK_AT_5XX,
  stage: () => usual(failing(error, [2, 4], 3)),
  met: answered(parseInt(error)),
  givingUp: 'allowed',
  judge: (play) => [...unretried(play), ...backoffFindings(play)],
});

const final = (error: string): SituationRow => ({
  title: `a ${parseInt(error)} is final: the request is not retried, and the client exits with an error`,
  lookAt: ['which statuses are retried: 5xx, 429, and 401 once', 'the exit status after an error: not 0'],
  stage: () => usual(answering(error, () => true)),
  met: answered(parseInt(error)),
  impossible: true,
  // A retry with another token is allowed (RFC 9110, 15.5.4).
  judge: ({ requests }) => {
    const first = pageRequests(requests)[0]?.token;
    return retryFindings(
      requests.filter(({ token }) => token === first),
      parseInt(error),
      0,
    );
  },
});

export const failureSituations = situationsOf('7.2', {
  '429-with-seconds': {
    title: 'after a 429, no request is sent for the seconds in `Retry-After`; then the walk continues',
    lookAt: LOOK_AT_429,
    stage: (clock) => usual(limitedAt([2], 2, clock)),
    met: answered(429),
    givingUp: 'warns',
    judge: tooEarly,
  },
  '429-with-a-date': {
    level: 'SHOULD',
    title: 'after a 429, no request is sent until the HTTP-date in `Retry-After` (RFC 9110, 10.2.3)',
    lookAt: ['the reader of Retry-After: it is a number of seconds, or an HTTP-date', ...LOOK_AT_429],
    stage: (clock) => usual(limitedAt([2], 1.8, clock, true)),
    met: answered(429),
    judge: tooEarly,
  },
  '429-twice': {
    title: 'a 429 for the first page is waited out, and a second one like the first',
    lookAt: LOOK_AT_429,
    stage: (clock) => usual(limitedAt([1, 1], 1, clock)),
    met: answered(429),
    givingUp: 'warns',
    judge: tooEarly,
  },
  '500-once': {
    title: 'a 5xx is retried, for the first page and with HTML too, and the walk continues at the same page',
    lookAt: [...LOOK_AT_5XX, 'the request for the first page: it is sent like every other'],
    stage: () => {
      const gateway = atFirst(2, () => html(502, 'Bad Gateway'));
      return usual(both(failing('500 internal_error', [1, 4], 1), gateway));
    },
    met: answered(500),
  },
  '503-three-times': threeTimes('503 service_unavailable'),
  '500-three-times': threeTimes('500 internal_error'),
  '503-for-ever': {
    title:
      'if 503 persists, the client gives up in bounded time, with growing waits, and exits with an error',
    lookAt: ['the number of retries: bounded', 'the exit status after the last one: not 0', ...LOOK_AT_5XX],
    stage: () => usual(failing('503 service_unavailable', [3], Infinity)),
    met: answered(503),
    impossible: true,
    judge: backoffFindings,
  },
  'connection-dropped': {
    section: '4.2',
    title: 'a truncated answer is no page: an incomplete window is not reported as complete',
    lookAt: [
      'the reader of the body: an early end of the connection is an error',
      'items that are printed before the whole page has been received',
    ],
    stage: () => usual(atFirst(2, truncated)),
    met: answered(0),
    givingUp: 'allowed',
  },
  'connection-dropped-for-ever': {
    section: '4.2',
    level: 'SHOULD',
    title:
      'if each answer for a page is truncated, the client gives up in bounded time, and exits with an error',
    lookAt: ['the number of retries after a broken connection: bounded'],
    stage: () => usual(atPage(2, truncated)),
    met: answered(0),
    impossible: true,
  },
  'html-for-a-page': {
    section: '4.2',
    title:
      'an answer 200 that is no page (HTML of a proxy) is an error: an incomplete window is not reported as complete',
    lookAt: ['the reader of the body: what is not JSON is an error, and not an empty page'],
    stage: () => usual(atPage(2, () => html(200, 'Maintenance'))),
    met: reached(({ status, page }) => status === 200 && !page, 'the page of HTML'),
    impossible: true,
  },
  'slow-answer': {
    section: '4.2',
    level: 'SHOULD',
    title: 'an answer that takes three seconds is waited for',
    lookAt: ['the timeout of a request: several seconds'],
    stage: (clock) => usual(atFirst(2, waiting(3_000, clock))),
    met: reached(({ atMs, endMs = Infinity }) => endMs - atMs > 1_500, 'the slow answer'),
  },
  '400-not-retried': final('400 invalid_request'),
  '403-not-retried': final('403 forbidden'),
  '404-not-retried': final('404 not_found'),
  'tls-trusted': {
    section: '4.1',
    optional: true,
    title: 'requests are sent over TLS to a server whose certificate the environment trusts',
    lookAt: [
      'the scheme of each request: that of base_url, auth_url and next',
      `the certificates to trust: the kit names them in ${TRUST_VARIABLES.join(', ')}`,
    ],
    stage: () => ({ ...usual(), tlsHost: 'localhost' }),
    givingUp: 'warns',
    judge: ({ plainRequests: plain }) =>
      unless(plain === 0, 'TLS for an https address', `${several(plain, 'request')} without TLS`),
    unspoken: `the client did not trust the certificate: it may read none of ${TRUST_VARIABLES.join(', ')}`,
  },
  'tls-another-name': {
    section: '4.1',
    optional: true,
    title: 'a server whose certificate is for another name receives no request',
    lookAt: ['options that switch off the check of certificates or of the name in them'],
    stage: () => ({ ...usual(), tlsHost: '127.0.0.1' }),
    needs: 'tls-trusted',
    impossible: true,
    judge: ({ requests }) => {
      const expected = 'no request to a server whose certificate is for another name';
      const pages = pageRequests(requests).length > 0 ? ', pages among them' : '';
      const received = `${several(requests.length, 'request')}${pages}`;
      return none(requests, expected, received);
    },
  },
});

function unretried({ requests, ended }: Play) {
  const [series] = seriesOf(requests, ({ status }) => status >= 500);
  const isRetried = !series || series.waitsMs.length > 0 || ended.status === 0;
  const received = `exit status ${ended.status} after the first failure`;
  return unless(isRetried, 'a retry', received, series?.requests);
}

const failing = (error: string, pages: readonly number[], times: number): ServerOptions =>
  pageStep(
    () =>
      ({ page, attempt }, request, next) =>
        pages.includes(page) && attempt <= times ? refusal(error) : next(request),
  );

/** A rate limit for all pages, triggered at each of these in turn. `isDated`: Retry-After is the next whole second. */
const limitedAt = (pages: readonly number[], seconds: number, clock: Clock, isDated = false): ServerOptions =>
  pageStep(() => {
    const left = [...pages];
    let until = -Infinity;
    const isHeld = (): boolean => clock.now() < until * 1000 - EARLY_MS;
    return ({ page }, request, next) => {
      if (!isHeld() && page >= (left[0] ?? Infinity)) {
        left.shift();
        until = clock.now() / 1000 + seconds;
        if (isDated) until = Math.ceil(until);
      }
      if (!isHeld()) return next(request);
      const wait = isDated ? new Date(until * 1000).toUTCString() : String(seconds);
      return withHeader(refusal('429 rate_limited'), 'retry-after', wait);
    };
  });

/** Announces the whole body but aborts in the middle. */
const truncated: PageStep = async (_place, request, next) => {
  const answer = await next(request);
  const octets = Buffer.from(String(answer.body));
  async function* half(): AsyncGenerator<Buffer> {
    yield octets.subarray(0, octets.length / 2);
    // Lets the first half be flushed.
    await setImmediate();
    throw new Error('a situation of the kit');
  }
  return { ...answer, headers: [...answer.headers, ['content-length', String(octets.length)]], body: half() };
};
