/** Incidents of correct servers: a single failure, defences against guessing, a gateway. */
import {
  answering,
  both,
  html,
  intercepting,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  nextUrls,
  oauthError,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { brokenBody } from '../faults/rest-errors.ts';
import { formOf } from '../faults/forms.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { readAs } from './stacks.ts';
import type { Groups } from './variant.ts';

type Answer = () => ServiceAnswer;

/** Answers one matching request with `answer`; its repetition is served. */
const once = (number: number, matches: (request: ServiceRequest) => boolean, answer: Answer): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (matches(request) && ++asked === number ? answer() : next(request));
  });

/** Answers every request, or every `eachOf`-th, within `forMs` with `answer`; repetitions after that are served. */
const answersFor = (number: number, forMs: number, answer: Answer, eachOf = 1): ServerOptions =>
  middleware(() => {
    let asked = 0;
    let untilMs = 0;
    return (request, next) => {
      if (isScreenings(request) && ++asked === number) untilMs = Date.now() + forMs;
      const fails = isScreenings(request) && Date.now() < untilMs && asked % eachOf === 0;
      return fails ? answer() : next(request);
    };
  });

interface Lockout {
  /** Number of wrong secrets. */
  readonly wrong: number;
  readonly forMs: number;
  readonly inARow: boolean;
}

/** Rejects every request of a client for a while after a number of wrong secrets. */
const lockout = ({ wrong, forMs, inARow }: Lockout, refuse: Answer): ServerOptions =>
  middleware(() => {
    const guarded = new Map<string, { wrong: number; untilMs: number }>();
    return async (request, next) => {
      const id = isTokenRequest(request) ? formOf(request).get('client_id')?.[0] : undefined;
      if (id === undefined) return next(request);
      const client = guarded.get(id) ?? { wrong: 0, untilMs: 0 };
      guarded.set(id, client);
      if (Date.now() < client.untilMs) return refuse();
      const answer = await next(request);
      if (answer.status === 200 && inARow) client.wrong = 0;
      if (answer.status === 401 && ++client.wrong >= wrong)
        guarded.set(id, { wrong: 0, untilMs: Date.now() + forMs });
      return answer;
    };
  });

const EVERY_THIRD: Lockout = { wrong: 3, forMs: 2_000, inARow: false };

const ATTACK = /['<>]|\$\{|\.\.\/|\0|\|\|/;

/** Decodes like a gateway; undecodable text counts as an attack too. */
function isAttack(path: string): boolean {
  try {
    return ATTACK.test(decodeURIComponent(path.replaceAll('+', ' ')));
  } catch {
    return true;
  }
}

/** Answers what looks like an attack. */
const againstAttacks = (answer: Answer): ServerOptions =>
  intercepting(answer, (request) => isScreenings(request) && isAttack(request.path));

/** RFC 3986, 3.4: only the form encoding decodes + as a space. */
const keepingRawPlus = middleware(() => (request, next) => {
  const [path, query] = request.path.split(/\?(.*)/s);
  return next(
    isScreenings(request) && query
      ? { ...request, path: `${path}?${query.replaceAll('+', '%2B')}` }
      : request,
  );
});

const isAttackOfForms = ({ body }: ServiceRequest): boolean => /%00|%5B%24ne%5D/i.test(body.toString());

const PARAMETERS = ['from', 'to', 'pageSize', 'from_id'];

const MAX_REJECTIONS = 40;
const WINDOW_MS = 10_000;
const BAN_MS = 2_000;

/** After 40 rejected tokens within ten seconds, rejects the sender for a while. */
const againstGuesses = (
  refuse: Answer,
  whose: (request: ServiceRequest) => string = () => 'address',
): ServerOptions =>
  middleware(() => {
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
  });

/** After 25 token requests within five seconds, rejects all of them for a while. */
const againstFloods = (refuse: Answer): ServerOptions =>
  middleware(() => {
    let admittedAtMs: number[] = [];
    let untilMs = 0;
    return (request, next) => {
      if (!isTokenRequest(request)) return next(request);
      const nowMs = Date.now();
      admittedAtMs = [...admittedAtMs.filter((atMs) => atMs > nowMs - 5_000), nowMs];
      if (admittedAtMs.length > 25) [admittedAtMs, untilMs] = [[], nowMs + BAN_MS];
      return nowMs < untilMs ? refuse() : next(request);
    };
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

export const accidents: Groups = {
  'with accidents': {
    'one 503 in the whole run': once(90, isScreenings, () => refusal('503 service_unavailable')),
    'one 408 of a proxy that closes its connection': once(50, isScreenings, () =>
      html(408, 'Request Time-out'),
    ),
    'one 503 of the token endpoint, with HTML': once(3, isTokenRequest, () =>
      withHeader(html(503, 'Service Unavailable'), 'retry-after', '1'),
    ),
    'a gateway that answers 403 with HTML to what looks like an attack': againstAttacks(() =>
      html(403, 'Request blocked'),
    ),
    'a gateway that answers 400 with HTML to a NUL or an operator of MongoDB in a form': intercepting(
      () => html(400, 'Bad Request'),
      (request) => isTokenRequest(request) && isAttackOfForms(request),
    ),
    '501 for every method of pages but GET': intercepting(
      () => html(501, 'Not Implemented'),
      (request) => request.method !== 'GET' && !isTokenRequest(request),
    ),
    'every third wrong secret locks the client out, with 401': lockout(EVERY_THIRD, invalidClient),
  },
  'with encoded links': {
    'five wrong secrets in a row lock the client out, with 429': lockout(
      { wrong: 5, forMs: 4_000, inARow: true },
      () => jsonAnswer(429, { error: 'temporarily_unavailable' }, [['retry-after', '4']]),
    ),
    '+5 is read as 5': readAs('pageSize|from_id', (text) => /^%2B(\d+)$/i.exec(text)?.[1]),
    'a raw + in a query is a +': keepingRawPlus,
    'an empty pageSize or from_id is ignored': readAs('pageSize|from_id', (text) =>
      text === '' ? '' : undefined,
    ),
  },
  'with a store of microseconds': {
    'one answer that breaks off': once(140, isScreenings, () => ({
      status: 200,
      headers: [['content-type', 'application/json']],
      body: brokenBody(),
    })),
    'an unknown query parameter is refused before authentication': answering(
      '400 invalid_request',
      (query) => ![...query.keys()].every((name) => PARAMETERS.includes(name)),
    ),
  },
  'with a store of milliseconds': {
    'a deployment: 502 with HTML for a second and a half': answersFor(130, 1_500, () =>
      html(502, 'Bad Gateway'),
    ),
  },
  'with tenants in capitals': {
    'one of two instances is down for two seconds: half of the answers are 502 with HTML': answersFor(
      300,
      2_000,
      () => html(502, 'Bad Gateway'),
      2,
    ),
  },
  'with a guard that answers 403': {
    '40 refused tokens in ten seconds: 403 with HTML': againstGuesses(forbidden),
    '25 token requests in five seconds: 403 with HTML': againstFloods(forbidden),
  },
  'with a guard that closes connections': {
    '40 refused tokens in ten seconds: connections close': againstGuesses(reset),
  },
  'with a guard that answers 429': {
    '40 refused tokens in ten seconds: 429': againstGuesses(() =>
      withHeader(refusal('429 rate_limited'), 'retry-after', '2'),
    ),
  },
  'with a guard that answers 429 with HTML': {
    '40 refused tokens in ten seconds: 429 with HTML and no Retry-After': againstGuesses(() =>
      html(429, 'Too Many Requests'),
    ),
  },
  'with a guard for each tenant': {
    '40 refused tokens in ten seconds on a path: 403 with HTML there': againstGuesses(forbidden, tenantOf),
    'every third wrong secret locks the client out, with 423': lockout(EVERY_THIRD, () =>
      oauthError(423, 'locked'),
    ),
  },
  'with compression': {
    // It serves the client before the ten minutes are over.
    'a gateway that answers 429 with a Retry-After of ten minutes to what looks like an attack':
      againstAttacks(() => jsonAnswer(429, { title: 'Too Many Requests' }, [['retry-after', '600']])),
    'every third wrong secret locks the client out, with 400': lockout(EVERY_THIRD, () =>
      oauthError(400, 'invalid_request'),
    ),
    'a raw + in a query is a +, and next has it so': both(
      keepingRawPlus,
      nextUrls(({ href }) => href.replaceAll('%2B', '+')),
    ),
  },
};
