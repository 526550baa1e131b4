/** Ways to alter what goes into a server and what comes out of it. */
import { jsonAnswer, type Handler, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { PageQuery, StoredPage } from '../parts.ts';
import type { ServerOptions } from './start.ts';

export const isScreenings = ({ path }: ServiceRequest): boolean =>
  /\/tenants\/[^/?]+\/screening(s|%73)(\?|$)/.test(path);
export const isTokenRequest = ({ path }: ServiceRequest): boolean => /\/oauth\/token(\?|$)/.test(path);

export const queryOf = ({ path }: ServiceRequest): URLSearchParams =>
  new URLSearchParams(path.includes('?') ? path.slice(path.indexOf('?') + 1) : '');

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

// -- tokens ------------------------------------------------------------------------------------

type Json = Record<string, unknown>;

/** Alters the body of every token that is issued. */
export const tokenBody = (alter: (body: Json, request: ServiceRequest) => Json): ServerOptions =>
  tokenAnswers((answer, request) => ({
    ...answer,
    body: JSON.stringify(alter(JSON.parse(String(answer.body)) as Json, request)),
  }));

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
  withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic');

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
    const { next } = page.links as { next?: string };
    if (next === undefined) return;
    const altered = alter(new URL(next), page, query);
    const text = altered === undefined ? undefined : String(altered);
    page.links = text === undefined ? {} : { next: text };
    page.headers = page.headers.filter(([name]) => name !== 'link');
    if (text !== undefined) page.headers.push(['link', `<${text}>; rel="next"`]);
  });

/** The members of an item's text that every item has. */
export function fieldsOf(item: string): { id: string; tenantId: string; testTime: string } {
  const match = /^\{"id":(-?\d+),"tenantId":"([^"]*)","testTime":"([^"]*)"/.exec(item);
  if (!match) throw new Error(`not an item of the generator: ${item.slice(0, 80)}`);
  return { id: match[1]!, tenantId: match[2]!, testTime: match[3]! };
}
