/** Building blocks of faults and variants: they alter a server's requests, answers and parts. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseInstant, type Instant } from '../../engine/data/instant.ts';
import { errorAnswer, jsonAnswer, splitTarget } from '../http/http.ts';
import type { Handler, HeaderLines, ServiceAnswer, ServiceRequest } from '../http/http.ts';
import type { ScreeningStore, ServiceParts, TokenClaims } from '../parts.ts';
import { every, type Where } from './conditions.ts';
import type { ServerOptions } from './start.ts';

export const isScreenings = ({ path }: ServiceRequest): boolean =>
  /\/tenants\/[^/?]+\/screening(s|%73)(\?|$)/.test(path);
export const isTokenRequest = ({ path }: ServiceRequest): boolean => /\/oauth\/token(\?|$)/.test(path);

export const queryOf = ({ path }: ServiceRequest): URLSearchParams =>
  new URLSearchParams(splitTarget(path)[1]);

/** The instants of from and to; undefined if missing or invalid. */
export const windowOf = (query: URLSearchParams): [from: Instant | undefined, to: Instant | undefined] => [
  parseInstant(query.get('from') ?? ''),
  parseInstant(query.get('to') ?? ''),
];

/** The URL that the client used. */
export const urlOf = ({ headers, path }: ServiceRequest): string => `http://${headers['host']}${path}`;

/** A copy of the request with changed query parameters, which are encoded again. */
export function withQuery(request: ServiceRequest, change: (query: URLSearchParams) => void): ServiceRequest {
  const query = queryOf(request);
  change(query);
  return { ...request, path: `${splitTarget(request.path)[0]}?${query}` };
}

export type Middleware = (request: ServiceRequest, next: Handler) => Promise<ServiceAnswer> | ServiceAnswer;

/** `make` runs once per server, so that each server has its own state. */
export function middleware(make: () => Middleware): ServerOptions {
  return {
    wrapHandler: (handler) => {
      const step = make();
      return async (request) => step(request, handler);
    },
  };
}

/** For state that several wrappers share: `make` runs once per server, before its parts are wrapped. */
export function perServer(make: () => ServerOptions): ServerOptions {
  let made: ServerOptions = {};
  return {
    wrapParts: (parts) => {
      made = make();
      return made.wrapParts?.(parts) ?? parts;
    },
    wrapHandler: (handler) => made.wrapHandler?.(handler) ?? handler,
  };
}

type Step = (number: number, ...args: Parameters<Middleware>) => ReturnType<Middleware>;

/** Passes matching requests to `step` with their number in this server, counted from 1. */
export const counting = (step: Step, where = (_: ServiceRequest): boolean => true): ServerOptions =>
  middleware(() => {
    let number = 0;
    return (request, next) => (where(request) ? step((number += 1), request, next) : next(request));
  });

/** `step` gets how many requests of the same key are in flight, this one included; if it waits, requests overlap. */
export const concurrently = (keyOf: (request: ServiceRequest) => string | undefined, step: Step) =>
  middleware(() => {
    const inFlight = new Map<string, number>();
    return async (request, next) => {
      const key = keyOf(request);
      if (key === undefined) return next(request);
      const number = (inFlight.get(key) ?? 0) + 1;
      inFlight.set(key, number);
      try {
        return await step(number, request, next);
      } finally {
        inFlight.set(key, inFlight.get(key)! - 1);
      }
    };
  });

/** For `concurrently`: counts all requests for pages together. */
export const asPages = (request: ServiceRequest): string | undefined =>
  isScreenings(request) ? 'pages' : undefined;

/** Answers requests of a key with `answer` while more than `most` of them are in flight; others take `latencyMs` more. */
export const crowded = (
  keyOf: (request: ServiceRequest) => string | undefined,
  { most, latencyMs }: { readonly most: number; readonly latencyMs: number },
  answer: () => ServiceAnswer,
): ServerOptions =>
  concurrently(keyOf, async (inFlight, request, next) => {
    if (inFlight > most) return answer();
    await sleep(latencyMs);
    return next(request);
  });

/** Combines servers, the first one innermost: requests pass it last. */
export function both(...servers: readonly ServerOptions[]): ServerOptions {
  const handlers = servers.flatMap(({ wrapHandler }) => wrapHandler ?? []);
  const parts = servers.flatMap(({ wrapParts }) => wrapParts ?? []);
  return {
    ...(Object.assign({}, ...servers) as ServerOptions),
    wrapHandler: (handler) => handlers.reduce((inner, wrap) => wrap(inner), handler),
    wrapParts: (inner) => parts.reduce((wrapped, wrap) => wrap(wrapped), inner),
  };
}

/** Answers matching requests, on any path, without the service. */
export const intercepting = (answer: () => ServiceAnswer, where: Where): ServerOptions =>
  middleware(() => (request, next) => (where(request, queryOf(request)) ? answer() : next(request)));

type Alteration = (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer;

/** Alters the answers that match. */
export const answers = (
  alter: Alteration,
  where: (answer: ServiceAnswer, request: ServiceRequest) => boolean = () => true,
): ServerOptions =>
  middleware(() => async (request, next) => {
    const answer = await next(request);
    return where(answer, request) ? alter(answer, request) : answer;
  });

export const requests = (alter: (request: ServiceRequest) => ServiceRequest): ServerOptions =>
  middleware(() => (request, next) => next(alter(request)));

export const refusals = (
  statuses: readonly number[],
  alter: Alteration,
  where: Where = () => true,
): ServerOptions =>
  answers(
    alter,
    ({ status }, request) =>
      isScreenings(request) && statuses.includes(status) && where(request, queryOf(request)),
  );

/** An error of the REST API by status and code, such as `404 not_found`. */
export function refusal(statusAndCode: string): ServiceAnswer {
  const [status = '', code = ''] = statusAndCode.split(' ');
  const headers = status === '401' ? [['www-authenticate', 'Bearer'] as const] : [];
  return errorAnswer(Number(status), code, 'refused', headers);
}

export const html = (status: number, title: string, headers: HeaderLines = []): ServiceAnswer => ({
  status,
  headers: [['content-type', 'text/html'], ...headers],
  body: `<h1>${title}</h1>`,
});

export const withoutBody = (status: number, headers: HeaderLines = []): ServiceAnswer => ({
  ...{ status, headers, body: '' },
});

export const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

/** Answers matching requests for screenings, authenticated or not, with an error such as `404 not_found` or an answer. */
export const answering = (answer: string | (() => ServiceAnswer), where: Where): ServerOptions =>
  intercepting(typeof answer === 'string' ? () => refusal(answer) : answer, every(isScreenings, where));

export const crashing = (where: Where): ServerOptions => answering('500 internal_error', where);

/** Replaces errors with this code by an empty page. */
export const accepting = (code: string, where: Where = () => true): ServerOptions =>
  answers(
    emptyPage,
    ({ body }, request) =>
      isScreenings(request) && String(body).includes(`"${code}"`) && where(request, queryOf(request)),
  );

export const onPages = (
  alter: (answer: ServiceAnswer, query: URLSearchParams, request: ServiceRequest) => ServiceAnswer,
  where?: Where,
): ServerOptions => refusals([200], (page, request) => alter(page, queryOf(request), request), where);

export const pageText = (from: string | RegExp, to: string): ServerOptions =>
  onPages((answer) => ({ ...answer, body: String(answer.body).replace(from, to) }));

/** Changes parameters of the screenings path; a query that stays the same keeps its spelling. */
export const onQuery = (change: (query: URLSearchParams, request: ServiceRequest) => void): ServerOptions =>
  requests((request) => {
    if (!isScreenings(request)) return request;
    const altered = withQuery(request, (query) => change(query, request));
    return String(queryOf(altered)) !== String(queryOf(request)) ? altered : request;
  });

/** Reads query parameters like another parser; undefined treats a parameter as absent. */
export const reading = (names: readonly string[], read: (text: string) => string | undefined) =>
  onQuery((query) => {
    for (const name of names) {
      const shown = query.get(name);
      const text = shown === null ? null : read(shown);
      if (text === undefined) query.delete(name);
      else if (text !== null && text !== shown) query.set(name, text);
    }
  });

export const defaulting = (name: string, value: () => string, where: Where = () => true): ServerOptions =>
  onQuery((query, request) => {
    if (!query.has(name) && where(request, query)) query.set(name, value());
  });

type Wrapped<Method> = Method extends (...args: infer Args) => infer Result
  ? (...args: [...Args, real: Method]) => Result
  : never;

/** Wraps one method of a part of the service. `make` runs once per server; its function also gets the real method. */
const wrapping =
  <Part extends 'store' | 'tokens' | 'clients', Name extends keyof ServiceParts[Part]>(
    part: Part,
    name: Name,
  ) =>
  (make: () => Wrapped<ServiceParts[Part][Name]>): ServerOptions => ({
    wrapParts: (parts) => {
      const step = make() as unknown as (...args: unknown[]) => unknown;
      const real = parts[part][name];
      return { ...parts, [part]: { ...parts[part], [name]: (...args: unknown[]) => step(...args, real) } };
    },
  });

export type PageOf = ScreeningStore['page'];
export const storedPages = wrapping('store', 'page');
/** The authentication of clients at the token endpoint. */
export const authenticating = wrapping('clients', 'authenticate');
export const minting = wrapping('tokens', 'mint');
/** The verification of bearer tokens. */
export const verifying = wrapping('tokens', 'verify');

export function withHeader(answer: ServiceAnswer, name: string, value: string | undefined): ServiceAnswer {
  const others = answer.headers.filter(([known]) => known.toLowerCase() !== name.toLowerCase());
  return { ...answer, headers: value === undefined ? others : [...others, [name, value]] };
}

/** An alteration that sets a header or, without a value, removes it. */
export const header =
  (name: string, value?: string) =>
  (answer: ServiceAnswer): ServiceAnswer =>
    withHeader(answer, name, value);

// -- tokens ------------------------------------------------------------------------------------

type Json = Record<string, unknown>;

/** New values of members, computed from the original object; undefined removes a member. */
type Changes = Readonly<Record<string, unknown>>;
const changed = (original: Json, make: (original: Json) => Changes): Json =>
  Object.fromEntries(Object.entries({ ...original, ...make(original) }).filter(([, v]) => v !== undefined));

export const tokenMembers = (make: (body: Json) => Changes): ServerOptions =>
  tokenBody((body) => changed(body, make));

/** Changes claims of every token; the server still accepts the token with its original claims. */
export const tokenClaims = (make: (claims: Json) => Changes): ServerOptions => ({
  wrapParts: (parts) => {
    const own = new Map<string, TokenClaims>();
    const { tokens } = parts;
    return {
      ...parts,
      tokens: {
        async mint(original) {
          const token = await tokens.mint(changed({ ...original }, make) as never);
          own.set(token, original);
          return token;
        },
        verify: async (token, nowSeconds) => own.get(token) ?? tokens.verify(token, nowSeconds),
      },
    };
  },
});

export const jsonBody =
  (change: (body: Json) => unknown) =>
  (answer: ServiceAnswer): ServiceAnswer => ({
    ...answer,
    body: JSON.stringify(change(JSON.parse(String(answer.body)) as Json)),
  });

export const tokenBody = (alter: (body: Json, request: ServiceRequest) => Json): ServerOptions =>
  tokenAnswers((answer, request) => jsonBody((body) => alter(body, request))(answer));

export const tokenAnswers = (alter: Alteration, where: Where = () => true): ServerOptions =>
  answers(
    alter,
    ({ status }, request) => isTokenRequest(request) && status === 200 && where(request, queryOf(request)),
  );

/** Alters errors of the token endpoint with this value of `error`. */
export const tokenErrors = (error: string, alter: Alteration): ServerOptions =>
  answers(
    alter,
    ({ body }, request) => isTokenRequest(request) && String(body).includes(`"error":"${error}"`),
  );

export const oauthError = (status: number, error: string): ServiceAnswer =>
  jsonAnswer(status, { error, error_description: 'refused' }, [['cache-control', 'no-store']]);

/** The answer to wrong client credentials, with its challenge. */
export const invalidClient = (): ServiceAnswer =>
  withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic realm="token endpoint"');

/** Values of the current request; shared, because each AsyncLocalStorage that was used slows every promise. */
const current = new AsyncLocalStorage<ReadonlyMap<object, unknown>>();

/** Passes a value of the current request to the parts of the service. */
export function withRequestValue<Value>(
  valueOf: (request: ServiceRequest) => Value,
  inside: (current: () => Value) => ServerOptions,
): ServerOptions {
  const server = inside(() => current.getStore()?.get(server) as Value);
  return {
    ...server,
    wrapHandler: (handler) => {
      const inner = server.wrapHandler?.(handler) ?? handler;
      return (request) =>
        current.run(new Map(current.getStore()).set(server, valueOf(request)), () => inner(request));
    },
  };
}

// -- pages -------------------------------------------------------------------------------------

/** A page of the screenings path, parsed; items are JSON texts. */
export interface PageText {
  status: number;
  items: string[];
  links: unknown;
  headers: (readonly [string, string])[];
  /** The text after `links`. */
  further: string;
}

/** Alters every page; `number` counts the pages of this server. */
export const pages = (
  alter: (page: PageText, query: URLSearchParams, number: number, request: ServiceRequest) => void,
): ServerOptions =>
  middleware(() => {
    let number = 0;
    return async (request, next) => {
      const answer = await next(request);
      if (!isScreenings(request) || answer.status !== 200 || typeof answer.body !== 'string') return answer;
      number += 1;
      const page = parsePage(answer, answer.body);
      alter(page, queryOf(request), number, request);
      const { status, headers, items, links, further } = page;
      const body = `{"items":[${items.join(',')}]${links === undefined ? '' : `,"links":${JSON.stringify(links)}`}${further}}`;
      return { status, headers, body };
    };
  });

/** Alters the text of each item; `number` counts the pages of this server. */
export const eachText = (change: (item: string, number: number) => string): ServerOptions =>
  pages((page, _, number) => void (page.items = page.items.map((item) => change(item, number))));

function parsePage({ status, headers }: ServiceAnswer, body: string): PageText {
  const links: unknown = JSON.parse(body.slice(body.lastIndexOf(AFTER_ITEMS) + AFTER_ITEMS.length, -1));
  return { status, headers: [...headers], items: itemTexts(body), links, further: '' };
}

const AFTER_ITEMS = '],"links":';

/** The texts of the items on a page. No nested object starts with an id. */
export function itemTexts(body: string): string[] {
  const inner = body.slice('{"items":['.length, body.lastIndexOf(AFTER_ITEMS));
  return inner === '' ? [] : inner.split(/(?<=\}),(?=\{"id":)/);
}

/** Alters next in links and in the Link header; undefined removes both. */
export const nextUrls = (
  alter: (next: URL, page: PageText, query: URLSearchParams) => URL | string | undefined,
): ServerOptions =>
  pages((page, query) => {
    const next = nextOf(page);
    if (next === undefined) return;
    const altered = alter(new URL(next), page, query);
    setNext(page, altered === undefined ? undefined : String(altered));
  });

/** Alters the query parameters of next in links and in the Link header. */
export const nextQuery = (change: (query: URLSearchParams, page: PageText, asked: URLSearchParams) => void) =>
  nextUrls((next, page, asked) => {
    change(next.searchParams, page, asked);
    return next;
  });

/** The URL of next, if the page has one. */
export const nextOf = ({ links }: PageText): string | undefined => (links as { next?: string }).next;

export const withoutLink = (page: PageText): void =>
  void (page.headers = page.headers.filter(([name]) => name !== 'link'));

/** Sets next in links and in the Link header; undefined removes both. */
export function setNext(page: PageText, next: string | undefined): void {
  page.links = next === undefined ? {} : { next };
  withoutLink(page);
  if (next !== undefined) page.headers.push(['link', `<${next}>; rel="next"`]);
}
