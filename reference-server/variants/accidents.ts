/** Accidents of correct servers: a single failure, a guard against guessing, a gateway in front. */
import {
  instead,
  isScreenings,
  isTokenRequest,
  middleware,
  oauthError,
  queryOf,
  withHeader,
} from '../run/alter.ts';
import { dying } from '../faults/rest-errors.ts';
import { parseForm } from '../http/form.ts';
import { errorAnswer, jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { readAs } from './stacks.ts';
import type { Variant } from './variant.ts';

/** One request of the run is answered so; asked again, it is served. */
const once = (
  number: number,
  matches: (request: ServiceRequest) => boolean,
  answer: () => ServiceAnswer,
): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (matches(request) && ++asked === number ? answer() : next(request));
  });

export const failures: readonly Variant[] = [
  {
    name: 'one 503 in the whole run',
    server: once(90, isScreenings, () => errorAnswer(503, 'service_unavailable', 'a moment')),
  },
  {
    name: 'one 503 of the token endpoint, with a page of HTML',
    server: once(3, isTokenRequest, () => ({
      status: 503,
      headers: [
        ['content-type', 'text/html'],
        ['retry-after', '1'],
      ],
      body: '<h1>Service Unavailable</h1>',
    })),
  },
];

/** Whoever asks meanwhile is answered so; asked again after it, each is served. */
const awhile = (number: number, forMs: number, answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    let asked = 0;
    let untilMs = 0;
    return (request, next) => {
      if (isScreenings(request) && ++asked === number) untilMs = Date.now() + forMs;
      return isScreenings(request) && Date.now() < untilMs ? answer() : next(request);
    };
  });

export const redeployed: readonly Variant[] = [
  {
    name: 'a deployment: a second and a half of a gateway’s 502, with HTML',
    server: awhile(130, 1_500, () => ({
      status: 502,
      headers: [['content-type', 'text/html']],
      body: '<h1>Bad Gateway</h1>',
    })),
  },
];

export const brokenOnce: readonly Variant[] = [
  {
    name: 'one answer that breaks off',
    server: once(140, isScreenings, () => ({
      status: 200,
      headers: [['content-type', 'application/json']],
      body: dying(),
    })),
  },
];

/** After this many wrong secrets a client is rejected for a while, whatever it sends. */
const lockout = (
  name: string,
  { wrong, forMs, inARow }: { readonly wrong: number; readonly forMs: number; readonly inARow: boolean },
  refuse: () => ServiceAnswer,
): Variant => ({
  name,
  server: middleware(() => {
    const guarded = new Map<string, { wrong: number; untilMs: number }>();
    return async (request, next) => {
      const id = isTokenRequest(request)
        ? parseForm(request.body.toString())?.get('client_id')?.[0]
        : undefined;
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
    () => withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic realm="token endpoint"'),
  ),
];

export const lockedWith429: readonly Variant[] = [
  lockout(
    'five wrong secrets in a row lock the client out, with 429',
    { wrong: 5, forMs: 4_000, inARow: true },
    () => jsonAnswer(429, { error: 'temporarily_unavailable' }, [['retry-after', '4']]),
  ),
];

const blocked = (): ServiceAnswer => ({
  status: 403,
  headers: [['content-type', 'text/html']],
  body: '<h1>Request blocked</h1>',
});

const ATTACK = /['<>]|\$\{|\.\.\/|\0/;

/** As a gateway decodes it; what can't be decoded it takes for an attack too. */
function isAttack(path: string): boolean {
  try {
    return ATTACK.test(decodeURIComponent(path.replaceAll('+', ' ')));
  } catch {
    return true;
  }
}

const guarded = (refusal: () => ServiceAnswer): ServerOptions =>
  middleware(
    () => (request, next) => (isScreenings(request) && isAttack(request.path) ? refusal() : next(request)),
  );

export const gateway: readonly Variant[] = [
  { name: 'a gateway that answers 403 with HTML to what looks like an attack', server: guarded(blocked) },
  {
    name: '501 for every method of pages but GET',
    server: middleware(
      () => (request, next) =>
        request.method === 'GET' || isTokenRequest(request)
          ? next(request)
          : { status: 501, headers: [['content-type', 'text/html']], body: '<h1>Not Implemented</h1>' },
    ),
  },
];

/** Whoever sends what looks like an attack is told to stay away for ten minutes, and is not held to it. */
export const slowedDown: readonly Variant[] = [
  {
    name: 'a gateway that answers 429 with a Retry-After of ten minutes to what looks like an attack',
    server: guarded(() => jsonAnswer(429, { title: 'Too Many Requests' }, [['retry-after', '600']])),
  },
];

const PARAMETERS = ['from', 'to', 'pageSize', 'from_id'];

export const parameters: readonly Variant[] = [
  {
    name: 'an unknown query parameter is refused before anybody looks at who asks',
    server: instead((request) =>
      [...queryOf(request).keys()].every((name) => PARAMETERS.includes(name))
        ? undefined
        : errorAnswer(400, 'invalid_request', 'unknown parameter'),
    ),
  },
];

export const readings: readonly Variant[] = [
  { name: '+5 is read as 5', server: readAs('pageSize|from_id', (text) => /^%2B(\d+)$/i.exec(text)?.[1]) },
  {
    // RFC 3986, 3.4: only forms make a space of it.
    name: 'a raw + in a query is a +',
    server: middleware(() => (request, next) => {
      const [path, query] = request.path.split(/\?(.*)/s);
      return next(
        isScreenings(request) && query
          ? { ...request, path: `${path}?${query.replaceAll('+', '%2B')}` }
          : request,
      );
    }),
  },
  {
    name: 'an empty pageSize or from_id is as if absent',
    server: readAs('pageSize|from_id', (text) => (text === '' ? '' : undefined)),
  },
];
