/** Ways to alter what goes into a server and what comes out of it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { parseInstant, type Instant } from '../../engine/data/instant.ts';
import {
  errorAnswer,
  jsonAnswer,
  type Handler,
  type ServiceAnswer,
  type ServiceRequest,
} from '../http/http.ts';
import type { ClientRegistry, PageQuery, StoredPage, TokenClaims, TokenIssuer } from '../parts.ts';
import type { ServerOptions } from './start.ts';

export const isScreenings = ({ path }: ServiceRequest): boolean =>
  /\/tenants\/[^/?]+\/screening(s|%73)(\?|$)/.test(path);
export const isTokenRequest = ({ path }: ServiceRequest): boolean => /\/oauth\/token(\?|$)/.test(path);

export const queryOf = ({ path }: ServiceRequest): URLSearchParams =>
  new URLSearchParams(path.includes('?') ? path.slice(path.indexOf('?') + 1) : '');

/** The instants of from and to; undefined for those that are none. */
export const windowOf = (query: URLSearchParams): [from: Instant | undefined, to: Instant | undefined] => [
  parseInstant(query.get('from') ?? ''),
  parseInstant(query.get('to') ?? ''),
];

/** The same request with its parameters changed; they are encoded again. */
export function withQuery(request: ServiceRequest, change: (query: URLSearchParams) => void): ServiceRequest {
  const query = queryOf(request);
  change(query);
  return { ...request, path: `${request.path.split('?')[0]}?${query}` };
}

export type Middleware = (request: ServiceRequest, next: Handler) => Promise<ServiceAnswer> | ServiceAnswer;

/** `make` is called once a server, so that each has a state of its own. */
export function middleware(make: () => Middleware): ServerOptions {
  return {
    wrapHandler: (handler) => {
      const step = make();
      return async (request) => step(request, handler);
    },
  };
}

/** Made anew for each server, with a state of its own. */
export const fresh = (make: () => ServerOptions): ServerOptions => ({
  wrapHandler: (handler) => make().wrapHandler!(handler),
});

/** Two middlewares; requests pass `outer` first. */
export const both = (inner: ServerOptions, outer: ServerOptions): ServerOptions => ({
  wrapHandler: (handler) => outer.wrapHandler!(inner.wrapHandler!(handler)),
});

/** Answers some requests, of any path, by itself. */
export const intercepting = (
  answer: () => ServiceAnswer,
  where: (request: ServiceRequest) => boolean,
): ServerOptions => middleware(() => (request, next) => (where(request) ? answer() : next(request)));

/** Alters every answer. */
export const answers = (
  alter: (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer,
): ServerOptions => middleware(() => async (request, next) => alter(await next(request), request));

/** Alters every request. */
export const requests = (alter: (request: ServiceRequest) => ServiceRequest): ServerOptions =>
  middleware(() => (request, next) => next(alter(request)));

/** Alters the answers of the screenings path with one of these statuses. */
export const refusals = (
  statuses: readonly number[],
  alter: (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer,
): ServerOptions =>
  answers((answer, request) =>
    isScreenings(request) && statuses.includes(answer.status) ? alter(answer, request) : answer,
  );

/** An error of the REST API by status and code, such as `404 not_found`. */
export function refusal(statusAndCode: string): ServiceAnswer {
  const [status = '', code = ''] = statusAndCode.split(' ');
  return errorAnswer(
    Number(status),
    code,
    'refused',
    status === '401' ? [['www-authenticate', 'Bearer']] : [],
  );
}

/** A page of HTML, as gateways and frameworks answer. */
export const html = (status: number, title: string): ServiceAnswer => ({
  status,
  headers: [['content-type', 'text/html']],
  body: `<h1>${title}</h1>`,
});

export const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

/** Some requests of the screenings path. */
export type Where = (query: URLSearchParams, request: ServiceRequest) => boolean;

/** Answers some requests of the screenings path in one way, authenticated or not: with a refusal, or an answer made anew. */
export const answering = (answer: string | (() => ServiceAnswer), where: Where): ServerOptions =>
  instead((request) =>
    where(queryOf(request), request) ? (typeof answer === 'string' ? refusal(answer) : answer()) : undefined,
  );

/** Refusals with this code become an empty page. */
export const unnoticed = (code: string, where: Where = () => true): ServerOptions =>
  answers((answer, request) =>
    isScreenings(request) && String(answer.body).includes(`"${code}"`) && where(queryOf(request), request)
      ? emptyPage()
      : answer,
  );

/** Alters the pages as answers. */
export const served = (
  alter: (answer: ServiceAnswer, query: URLSearchParams, request: ServiceRequest) => ServiceAnswer,
): ServerOptions =>
  answers((answer, request) =>
    isScreenings(request) && answer.status === 200 ? alter(answer, queryOf(request), request) : answer,
  );

/** The text of pages: the first match of `from` becomes `to`. */
export const pageText = (from: string | RegExp, to: string): ServerOptions =>
  served((answer) => ({ ...answer, body: String(answer.body).replace(from, to) }));

/** Query parameters as another parser reads them; undefined: as if they were absent. */
export const reading = (
  names: readonly string[],
  read: (text: string, query: URLSearchParams) => string | undefined,
): ServerOptions =>
  requests((request) => {
    if (!isScreenings(request)) return request;
    const query = queryOf(request);
    const odd = names.filter((name) => query.has(name) && read(query.get(name)!, query) !== query.get(name));
    if (odd.length === 0) return request;
    return withQuery(request, (changed) => {
      for (const name of odd) {
        const text = read(query.get(name)!, query);
        if (text === undefined) changed.delete(name);
        else changed.set(name, text);
      }
    });
  });

/** An absent query parameter has a value. */
export const defaulting = (name: string, value: () => string, where: Where = () => true): ServerOptions =>
  requests((request) => {
    const query = queryOf(request);
    return isScreenings(request) && !query.has(name) && where(query, request)
      ? withQuery(request, (changed) => changed.set(name, value()))
      : request;
  });

/** Answers some requests of the screenings path by itself, authenticated or not. */
export const instead = (answer: (request: ServiceRequest) => ServiceAnswer | undefined): ServerOptions =>
  middleware(() => (request, next) => (isScreenings(request) && answer(request)) || next(request));

export type PageOf = (query: PageQuery) => Promise<StoredPage>;

/** Puts a step before the store's pages. `make` is called once a server. */
export const storedPages = (
  make: () => (query: PageQuery, ask: PageOf) => Promise<StoredPage>,
): ServerOptions => ({
  wrapParts: (parts) => {
    const step = make();
    return {
      ...parts,
      store: {
        isOnboarded: (tenantId) => parts.store.isOnboarded(tenantId),
        page: (query) => step(query, (asked) => parts.store.page(asked)),
      },
    };
  },
});

export function withHeader(answer: ServiceAnswer, name: string, value: string | undefined): ServiceAnswer {
  const others = answer.headers.filter(([known]) => known.toLowerCase() !== name.toLowerCase());
  return { ...answer, headers: value === undefined ? others : [...others, [name, value]] };
}

/** Alters the Authorization header of requests that have one. */
export const authorized = (change: (authorization: string) => string): ServerOptions =>
  requests((request) => {
    const { authorization } = request.headers;
    return authorization === undefined
      ? request
      : { ...request, headers: { ...request.headers, authorization: change(authorization) } };
  });

// -- tokens ------------------------------------------------------------------------------------

export type Json = Record<string, unknown>;

/** New values of members, made of the object as it was; undefined takes a member away. */
type Changes = Readonly<Record<string, unknown>>;
const changed = (original: Json, make: (original: Json) => Changes): Json =>
  Object.fromEntries(Object.entries({ ...original, ...make(original) }).filter(([, v]) => v !== undefined));

/** Members of the token response. */
export const tokenMembers = (make: (body: Json) => Changes): ServerOptions =>
  tokenBody((body) => changed(body, make));

/** Claims of the tokens. */
export const tokenClaims = (make: (claims: Json) => Changes): ServerOptions =>
  claims((original) => changed(original, make));

/** The body of a JSON answer with other members. */
export const jsonBody =
  (change: (body: Json) => unknown) =>
  (answer: ServiceAnswer): ServiceAnswer => ({
    ...answer,
    body: JSON.stringify(change(JSON.parse(String(answer.body)) as Json)),
  });

/** Alters the body of every token that is issued. */
export const tokenBody = (alter: (body: Json, request: ServiceRequest) => Json): ServerOptions =>
  tokenAnswers((answer, request) => jsonBody((body) => alter(body, request))(answer));

/** Alters every answer with a token. */
export const tokenAnswers = (
  alter: (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer,
): ServerOptions =>
  answers((answer, request) =>
    isTokenRequest(request) && answer.status === 200 ? alter(answer, request) : answer,
  );

/** Alters the refusals of the token endpoint: status, and the value of `error`. */
export const tokenErrors = (
  errors: readonly string[],
  alter: (answer: ServiceAnswer, request: ServiceRequest) => ServiceAnswer,
): ServerOptions =>
  answers((answer, request) => {
    if (!isTokenRequest(request) || answer.status < 400) return answer;
    const { error } = JSON.parse(String(answer.body)) as { error?: string };
    return errors.includes(error ?? '') ? alter(answer, request) : answer;
  });

export const oauthError = (status: number, error: string): ServiceAnswer =>
  jsonAnswer(status, { error, error_description: 'refused' }, [['cache-control', 'no-store']]);

/** Wrong client credentials, with the challenge that a 401 carries. */
export const invalidClient = (): ServiceAnswer =>
  withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic realm="token endpoint"');

/** Puts a step before the comparison of client_id and client_secret. `make` is called once a server. */
export const authenticating = (
  make: () => (
    id: string,
    secret: string,
    real: ClientRegistry['authenticate'],
  ) => ReturnType<ClientRegistry['authenticate']>,
): ServerOptions => ({
  wrapParts: (parts) => {
    const step = make();
    const real: ClientRegistry['authenticate'] = (id, secret) => parts.clients.authenticate(id, secret);
    return { ...parts, clients: { authenticate: (id, secret) => step(id, secret, real) } };
  },
});

/** Puts a step before the signing of tokens. `make` is called once a server. */
export const minting = (
  make: () => (claims: TokenClaims, real: TokenIssuer['mint']) => Promise<string>,
): ServerOptions => ({
  wrapParts: (parts) => {
    const { tokens } = parts;
    const step = make();
    return {
      ...parts,
      tokens: {
        verify: (token, nowSeconds) => tokens.verify(token, nowSeconds),
        mint: (original) => step(original, (altered) => tokens.mint(altered)),
      },
    };
  },
});

/** Makes a part of the request known to the parts of the service that answer it. */
export function knowing<Value>(
  valueOf: (request: ServiceRequest) => Value,
  inside: (current: () => Value) => ServerOptions,
): ServerOptions {
  const known = new AsyncLocalStorage<Value>();
  return {
    ...inside(() => known.getStore() as Value),
    wrapHandler: (handler) => (request) => known.run(valueOf(request), () => handler(request)),
  };
}

/** Alters the claims of every token; the server still knows the token as its own. */
export const claims = (alter: (claims: Json) => Json): ServerOptions => ({
  wrapParts: (parts) => {
    const own = new Map<string, Parameters<typeof parts.tokens.mint>[0]>();
    const { tokens } = parts;
    return {
      ...parts,
      tokens: {
        async mint(original) {
          const token = await tokens.mint(alter({ ...original }) as never);
          own.set(token, original);
          return token;
        },
        verify: async (token, nowSeconds) => own.get(token) ?? tokens.verify(token, nowSeconds),
      },
    };
  },
});

// -- pages -------------------------------------------------------------------------------------

/** A 200 of the screenings path, taken apart; items are JSON texts. */
interface PageText {
  status: number;
  items: string[];
  links: unknown;
  headers: (readonly [string, string])[];
  /** Members after `links`. */
  further: string;
}

/** Alters every page; `number` counts the server's pages. */
export const pages = (
  alter: (page: PageText, query: URLSearchParams, number: number, request: ServiceRequest) => void,
): ServerOptions =>
  middleware(() => {
    let number = 0;
    return async (request, next) => {
      const answer = await next(request);
      if (!isScreenings(request) || answer.status !== 200 || typeof answer.body !== 'string') return answer;
      number += 1;
      const page = takeApart(answer, answer.body);
      alter(page, queryOf(request), number, request);
      const { status, headers, items, links, further } = page;
      const body = `{"items":[${items.join(',')}]${links === undefined ? '' : `,"links":${JSON.stringify(links)}`}${further}}`;
      return { status, headers, body };
    };
  });

function takeApart({ status, headers }: ServiceAnswer, body: string): PageText {
  const end = body.lastIndexOf('],"links":');
  const inner = body.slice('{"items":['.length, end);
  return {
    status,
    headers: [...headers],
    // An item's own objects do not begin with an id.
    items: inner === '' ? [] : inner.split(/(?<=\}),(?=\{"id":)/),
    links: JSON.parse(body.slice(end + '],"links":'.length, -1)) as unknown,
    further: '',
  };
}

/** Alters next and the Link header alike. `alter` gives undefined to leave it out. */
export const nextUrls = (
  alter: (next: URL, page: PageText, query: URLSearchParams) => URL | string | undefined,
): ServerOptions =>
  pages((page, query) => {
    const next = nextOf(page);
    if (next === undefined) return;
    const altered = alter(new URL(next), page, query);
    const text = altered === undefined ? undefined : String(altered);
    page.links = text === undefined ? {} : { next: text };
    withoutLink(page);
    if (text !== undefined) page.headers.push(['link', `<${text}>; rel="next"`]);
  });

/** Alters the parameters of next, in links and Link alike. */
export const nextQuery = (
  change: (query: URLSearchParams, page: PageText, asked: URLSearchParams) => void,
): ServerOptions =>
  nextUrls((next, page, asked) => {
    change(next.searchParams, page, asked);
    return next;
  });

/** The URL of next in a page that has one. */
export const nextOf = ({ links }: PageText): string | undefined => (links as { next?: string }).next;

export const withoutLink = (page: PageText): void =>
  void (page.headers = page.headers.filter(([name]) => name !== 'link'));

/** The members of an item's text that every item has. */
export function fieldsOf(item: string): { id: string; tenantId: string; testTime: string } {
  const match = /^\{"id":(-?\d+),"tenantId":"([^"]*)","testTime":"([^"]*)"/.exec(item);
  if (!match) throw new Error(`not an item of the generator: ${item.slice(0, 80)}`);
  return { id: match[1]!, tenantId: match[2]!, testTime: match[3]! };
}
