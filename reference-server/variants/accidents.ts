/** Incidents of correct servers: a single failure, defences against guessing, a gateway. */
import {
  asPages,
  both,
  counting,
  crowded,
  html,
  intercepting,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  oauthError,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { hasHeader, not } from '../run/conditions.ts';
import { refusingUnknownParameters } from '../faults/authentication.ts';
import { brokenAnswer } from '../faults/rest-errors.ts';
import { fieldOf } from '../faults/forms.ts';
import { guarded, type Guard } from '../faults/limits.ts';
import { keepingRawPlus, nextWithRawPlus } from '../faults/next.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { readAs } from './stacks.ts';
import type { Groups } from './variant.ts';

type Answer = () => ServiceAnswer;

/** Answers one matching request with `answer`; its repetition is served. */
const once = (number: number, matches: (request: ServiceRequest) => boolean, answer: Answer): ServerOptions =>
  counting((asked, request, next) => (asked === number ? answer() : next(request)), matches);

/**
 * From the request `number` on and for `forMs`, answers every matching request, or every `eachOf`-th, or those with its
 * path and query alone, with `answer`; repetitions after that are served.
 */
export const answersFor = (
  number: number,
  forMs: number,
  answer: Answer,
  { matches = isScreenings, eachOf = 1, ofOnePath = false } = {},
): ServerOptions =>
  middleware(() => {
    let asked = 0;
    let untilMs = 0;
    let first = '';
    return (request, next) => {
      if (!matches(request)) return next(request);
      asked += 1;
      if (asked === number) [untilMs, first] = [Date.now() + forMs, request.path];
      const isMet = ofOnePath ? request.path === first : asked % eachOf === 0;
      return Date.now() < untilMs && isMet ? answer() : next(request);
    };
  });

const EVERY_THIRD: Guard = { keyOf: fieldOf('client_id'), threshold: 3, forMs: 2_000 };

const ATTACK = /['<>]|\$\{|\.\.\/|\0|\|\|/;

/** Decodes like a gateway; undecodable text counts as an attack too. */
function isAttack(path: string): boolean {
  try {
    return ATTACK.test(decodeURIComponent(path.replaceAll('+', ' ')));
  } catch {
    return true;
  }
}

const againstAttacks = (answer: Answer): ServerOptions =>
  intercepting(answer, (request) => isScreenings(request) && isAttack(request.path));

/** Rejects a sender's requests for two seconds after 40 rejected tokens within ten seconds. */
const againstGuesses = (refuse: Answer, keyOf = asPages): ServerOptions =>
  guarded({ keyOf, threshold: 40, withinMs: 10_000, forMs: 2_000 }, refuse);

/** Rejects token requests for two seconds after 25 of them were answered within five seconds. */
const againstFloods = (refuse: Answer): ServerOptions =>
  guarded(
    {
      keyOf: (request) => (isTokenRequest(request) ? 'all' : undefined),
      ...{ counts: () => true, threshold: 25, withinMs: 5_000, forMs: 2_000 },
    },
    refuse,
  );

const badGateway = (): ServiceAnswer => html(502, 'Bad Gateway');
const forbidden = (): ServiceAnswer => html(403, '403 Forbidden');

/** Closes the connection before the first byte of an answer. */
const reset = (): ServiceAnswer => ({
  status: 200,
  headers: [],
  body: (async function* () {
    yield* [];
    throw new Error('refused by the guard');
  })(),
});

const ofTenant: Guard['keyOf'] = (request) =>
  isScreenings(request) ? /tenants\/([^/]+)/.exec(request.path)?.[1]?.toLowerCase() : undefined;

export const accidents: Groups = {
  'with accidents': {
    'one 503 in the whole run': once(90, isScreenings, () => refusal('503 service_unavailable')),
    'one 408 of a proxy that closes its connection': once(50, isScreenings, () =>
      html(408, 'Request Time-out'),
    ),
    // Like CloudFront, which keeps errors too.
    'one 503 that a cache keeps for ten seconds': answersFor(
      200,
      10_000,
      () => refusal('503 service_unavailable'),
      { ofOnePath: true },
    ),
    'one 503 of the token endpoint, with HTML': once(3, isTokenRequest, () =>
      html(503, 'Service Unavailable', [['retry-after', '1']]),
    ),
    'a gateway that answers 403 with HTML to what looks like an attack': againstAttacks(() =>
      html(403, 'Request blocked'),
    ),
    'a gateway that answers 400 with HTML to a NUL or an operator of MongoDB in a form': intercepting(
      () => html(400, 'Bad Request'),
      (request) => isTokenRequest(request) && /%00|%5B%24ne%5D/i.test(request.body.toString()),
    ),
    '501 for every method of pages but GET': intercepting(
      () => html(501, 'Not Implemented'),
      (request) => request.method !== 'GET' && !isTokenRequest(request),
    ),
    'every third wrong secret locks the client out, with 401': guarded(EVERY_THIRD, invalidClient),
  },
  'with encoded links': {
    'five wrong secrets in a row lock the client out, with 429': guarded(
      { keyOf: fieldOf('client_id'), threshold: 5, inARow: true, forMs: 4_000 },
      () => jsonAnswer(429, { error: 'temporarily_unavailable' }, [['retry-after', '4']]),
    ),
    '+5 is read as 5': readAs('pageSize|from_id', (text) => /^%2B(\d+)$/i.exec(text)?.[1]),
    'a raw + in a query is a +': keepingRawPlus,
    'an empty pageSize or from_id is ignored': readAs('pageSize|from_id', (text) =>
      text === '' ? '' : undefined,
    ),
  },
  'with a store of microseconds': {
    'one answer that breaks off': once(140, isScreenings, brokenAnswer),
    'an unknown query parameter is refused before authentication': refusingUnknownParameters(),
  },
  'with a store of milliseconds': {
    'a deployment: 502 with HTML for a second and a half': answersFor(130, 1_500, badGateway),
  },
  'with a cache': {
    'a deployment, while a cache in front still answers: 502 with HTML for a second and a half': answersFor(
      300,
      1_500,
      badGateway,
    ),
  },
  'with tenants in capitals': {
    'one of two instances is down for two seconds: half of the answers are 502 with HTML': answersFor(
      300,
      2_000,
      badGateway,
      { eachOf: 2 },
    ),
  },
  'with a guard that answers 403': {
    '40 refused tokens in ten seconds: 403 with HTML': againstGuesses(forbidden),
    '25 token requests in five seconds: 403 with HTML': againstFloods(forbidden),
    // Like the dynamic IP restrictions of IIS.
    'more than five requests in flight: 403 with HTML': crowded(
      () => 'address',
      { most: 5, latencyMs: 2 },
      forbidden,
    ),
  },
  'with a guard that counts refused tokens in a row': {
    '20 refused tokens in a row: 403 with HTML for ten minutes': guarded(
      { keyOf: asPages, threshold: 20, inARow: true, forMs: 600_000 },
      forbidden,
    ),
  },
  // Like HAProxy with http_err_rate.
  'with a guard that closes connections': {
    // Like nginx with 444.
    'a firewall that closes connections where there is no User-Agent': intercepting(
      reset,
      not(hasHeader('user-agent')),
    ),
    '30 answers of 4xx in ten seconds: connections close': guarded(
      {
        ...{ keyOf: () => 'address', counts: ({ status }) => status >= 400 && status < 500 },
        ...{ threshold: 30, withinMs: 10_000, forMs: 500 },
      },
      reset,
    ),
  },
  'with a guard that answers 429': {
    '40 refused tokens in ten seconds: 429': againstGuesses(() =>
      withHeader(refusal('429 rate_limited'), 'retry-after', '2'),
    ),
    'header fields of more than 2 kB: 431 with HTML': intercepting(
      () => html(431, 'Request Header Fields Too Large'),
      ({ headers }) => Object.entries(headers).join('\r\n').length > 2_048,
    ),
  },
  'with a guard that answers 429 with HTML': {
    '40 refused tokens in ten seconds: 429 with HTML and no Retry-After': againstGuesses(() =>
      html(429, 'Too Many Requests'),
    ),
  },
  'with a guard for each tenant': {
    '40 refused tokens in ten seconds on a path: 403 with HTML there': againstGuesses(forbidden, ofTenant),
    'every third wrong secret locks the client out, with 423': guarded(EVERY_THIRD, () =>
      oauthError(423, 'locked'),
    ),
  },
  'with compression': {
    // It serves the client before the ten minutes are over.
    'a gateway that answers 429 with a Retry-After of ten minutes to what looks like an attack':
      againstAttacks(() => jsonAnswer(429, { title: 'Too Many Requests' }, [['retry-after', '600']])),
    'every third wrong secret locks the client out, with 400': guarded(EVERY_THIRD, () =>
      oauthError(400, 'invalid_request'),
    ),
    'a raw + in a query is a +, and next has it so': both(keepingRawPlus, nextWithRawPlus),
  },
};
