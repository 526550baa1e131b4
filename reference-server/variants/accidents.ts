/** Incidents of correct servers: a single failure, defences against guessing, a gateway. */
import {
  answering,
  html,
  intercepting,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { brokenBody } from '../faults/rest-errors.ts';
import { formOf } from '../faults/forms.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { readAs } from './stacks.ts';
import { variants, type Variant } from './variant.ts';

/** Answers one matching request with `answer`; its repetition is served. */
const oneAnswer = (
  number: number,
  matches: (request: ServiceRequest) => boolean,
  answer: () => ServiceAnswer,
): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (matches(request) && ++asked === number ? answer() : next(request));
  });

export const failures = variants({
  'one 503 in the whole run': oneAnswer(90, isScreenings, () => refusal('503 service_unavailable')),
  'one 408 of a proxy that gave the connection up': oneAnswer(50, isScreenings, () =>
    html(408, 'Request Time-out'),
  ),
  'one 503 of the token endpoint, with a page of HTML': oneAnswer(3, isTokenRequest, () =>
    withHeader(html(503, 'Service Unavailable'), 'retry-after', '1'),
  ),
});

/** Answers every request, or every `eachOf`-th, within `forMs` with `answer`; repetitions after that are served. */
const answersFor = (number: number, forMs: number, answer: () => ServiceAnswer, eachOf = 1): ServerOptions =>
  middleware(() => {
    let asked = 0;
    let untilMs = 0;
    return (request, next) => {
      if (isScreenings(request) && ++asked === number) untilMs = Date.now() + forMs;
      const fails = isScreenings(request) && Date.now() < untilMs && asked % eachOf === 0;
      return fails ? answer() : next(request);
    };
  });

export const redeployed = variants({
  'a deployment: a second and a half of a gateway’s 502, with HTML': answersFor(130, 1_500, () =>
    html(502, 'Bad Gateway'),
  ),
});

export const halfDown = variants({
  'one of two instances is down for two seconds: half of the answers are a gateway’s 502': answersFor(
    300,
    2_000,
    () => html(502, 'Bad Gateway'),
    2,
  ),
});

export const brokenOnce = variants({
  'one answer that breaks off': oneAnswer(140, isScreenings, () => ({
    status: 200,
    headers: [['content-type', 'application/json']],
    body: brokenBody(),
  })),
});

/** Rejects every request of a client for a while after this number of wrong secrets. */
const lockout = (
  name: string,
  { wrong, forMs, inARow }: { readonly wrong: number; readonly forMs: number; readonly inARow: boolean },
  refuse: () => ServiceAnswer,
): Variant => ({
  name,
  server: middleware(() => {
    const guarded = new Map<string, { wrong: number; untilMs: number }>();
    return async (request, next) => {
      const id = isTokenRequest(request) ? formOf(request).get('client_id')?.[0] : undefined;
      if (id === undefined) return next(request);
      const client = guarded.get(id) ?? { wrong: 0, untilMs: 0 };
      guarded.set(id, client);
      if (Date.now() < client.untilMs) return refuse();
      const answer = await next(request);
      if (answer.status === 200 && inARow) client.wrong = 0;
      if (answer.status === 401 && ++client.wrong >= wrong) {
        Object.assign(client, { wrong: 0, untilMs: Date.now() + forMs });
      }
      return answer;
    };
  }),
});

export const lockedWith401: readonly Variant[] = [
  lockout(
    'every third wrong secret locks the client out for two seconds, with 401',
    { wrong: 3, forMs: 2_000, inARow: false },
    invalidClient,
  ),
];

export const lockedWith429: readonly Variant[] = [
  lockout(
    'five wrong secrets in a row lock the client out, with 429',
    { wrong: 5, forMs: 4_000, inARow: true },
    () => jsonAnswer(429, { error: 'temporarily_unavailable' }, [['retry-after', '4']]),
  ),
];

const blocked = (): ServiceAnswer => html(403, 'Request blocked');

const ATTACK = /['<>]|\$\{|\.\.\/|\0/;

/** Decodes like a gateway; undecodable text counts as an attack too. */
function isAttack(path: string): boolean {
  try {
    return ATTACK.test(decodeURIComponent(path.replaceAll('+', ' ')));
  } catch {
    return true;
  }
}

const guarded = (answer: () => ServiceAnswer): ServerOptions =>
  intercepting(answer, (request) => isScreenings(request) && isAttack(request.path));

export const gateway = variants({
  'a gateway that answers 403 with HTML to what looks like an attack': guarded(blocked),
  '501 for every method of pages but GET': intercepting(
    () => html(501, 'Not Implemented'),
    (request) => request.method !== 'GET' && !isTokenRequest(request),
  ),
});

/** Tells a client that sent an apparent attack to wait ten minutes, but serves it before that. */
export const slowedDown = variants({
  'a gateway that answers 429 with a Retry-After of ten minutes to what looks like an attack': guarded(() =>
    jsonAnswer(429, { title: 'Too Many Requests' }, [['retry-after', '600']]),
  ),
});

const PARAMETERS = ['from', 'to', 'pageSize', 'from_id'];

export const parameters = variants({
  'an unknown query parameter is refused before authentication': answering(
    '400 invalid_request',
    (query) => ![...query.keys()].every((name) => PARAMETERS.includes(name)),
  ),
});

export const readings = variants({
  '+5 is read as 5': readAs('pageSize|from_id', (text) => /^%2B(\d+)$/i.exec(text)?.[1]),
  // RFC 3986, 3.4: only the form encoding decodes + as a space.
  'a raw + in a query is a +': middleware(() => (request, next) => {
    const [path, query] = request.path.split(/\?(.*)/s);
    return next(
      isScreenings(request) && query
        ? { ...request, path: `${path}?${query.replaceAll('+', '%2B')}` }
        : request,
    );
  }),
  'an empty pageSize or from_id is as if absent': readAs('pageSize|from_id', (text) =>
    text === '' ? '' : undefined,
  ),
});

// -- after 40 rejected tokens within ten seconds the sender is rejected for a while -------------------

const MAX_REJECTIONS = 40;
const WINDOW_MS = 10_000;
const BAN_MS = 2_000;

const guard = (
  name: string,
  refuse: () => ServiceAnswer,
  whose: (request: ServiceRequest) => string = () => 'address',
): Variant => ({
  name,
  server: middleware(() => {
    const senders = new Map<string, { rejectedAtMs: number[]; untilMs: number }>();
    return async (request, next) => {
      if (!isScreenings(request)) return next(request);
      const kept = senders.get(whose(request)) ?? { rejectedAtMs: [], untilMs: 0 };
      senders.set(whose(request), kept);
      if (Date.now() < kept.untilMs) return refuse();
      const answer = await next(request);
      if (answer.status !== 401) return answer;
      kept.rejectedAtMs = [...kept.rejectedAtMs.filter((atMs) => atMs > Date.now() - WINDOW_MS), Date.now()];
      if (kept.rejectedAtMs.length >= MAX_REJECTIONS)
        senders.set(whose(request), { rejectedAtMs: [], untilMs: Date.now() + BAN_MS });
      return answer;
    };
  }),
});

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

const tenantOf = ({ path }: ServiceRequest): string =>
  /tenants\/([^/]+)/.exec(path)?.[1]?.toLowerCase() ?? '';

export const guards = {
  html: [guard('40 refused tokens in ten seconds: 403 with HTML', forbidden)],
  resets: [guard('40 refused tokens in ten seconds: connections close', reset)],
  throttles: [
    guard('40 refused tokens in ten seconds: 429', () =>
      withHeader(refusal('429 rate_limited'), 'retry-after', '2'),
    ),
  ],
  perTenant: [
    guard(
      '40 refused tokens in ten seconds on the path of a tenant: 403 with HTML there',
      forbidden,
      tenantOf,
    ),
  ],
} as const;
