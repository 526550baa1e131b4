/** Servers that misdirect their clients or make them wait; the token endpoint works. */
import { createServer } from 'node:http';
import { jsonAnswer, serve, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import {
  withTokenEndpoint,
  type Degenerate,
  http,
  isTokenPath,
  ITEMS,
  listenOn,
  page,
  TENANT,
  tokenAnswer,
} from './tools.ts';

const urlOf = ({ headers, path }: ServiceRequest): string => `http://${headers['host']}${path}`;

/** Returns pages whose `next` is computed from the request. */
const withNext = (
  name: string,
  next: (request: ServiceRequest) => string,
  items: readonly unknown[] = ITEMS,
): Degenerate =>
  http(
    name,
    withTokenEndpoint((request) => page(items, next(request))),
  );

/** Leads clients to another server, which records every request that reaches it. */
const leadingElsewhere = (
  name: string,
  lead: (origin: string, request: ServiceRequest) => ServiceAnswer,
): Degenerate => ({
  name,
  async start() {
    const reached: string[] = [];
    const other = await listenOn(
      createServer((request, response) => {
        reached.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`);
        request.resume();
        response.writeHead(200, { 'content-type': 'application/json' }).end(String(page().body));
      }),
    );
    const server = await serve(async (request) => lead(other.origin, request));
    return {
      origin: server.origin,
      leaked: () => reached,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        await other[Symbol.asyncDispose]();
      },
    };
  },
});

const redirect = (location: string, status = 302): ServiceAnswer => ({
  status,
  headers: [['location', location]],
  body: '',
});

const rejecting = (name: string, retryAfter: string | undefined, more: { slow?: boolean } = {}): Degenerate =>
  http(
    name,
    withTokenEndpoint(
      jsonAnswer(
        429,
        { code: 'rate_limited' },
        retryAfter === undefined ? [] : [['retry-after', retryAfter]],
      ),
    ),
    more,
  );

let counter = 0;

/** Another screening on every call. */
function another(): object {
  counter++;
  const at = new Date(Date.parse('2026-03-01T00:00:00Z') + counter * 1000).toISOString();
  return { id: counter, tenantId: TENANT, testTime: at };
}

export const WAYS: readonly Degenerate[] = [
  withNext('next leads to itself', urlOf, []),
  withNext('next leads in a circle', (request) =>
    urlOf(request).includes('&b')
      ? urlOf(request).replace('&b', '&a')
      : `${urlOf(request).replace('&a', '')}&b`,
  ),
  withNext('next leads ever forward, without items', (request) => `${urlOf(request)}0`, []),
  http(
    'next leads ever forward, an item a page',
    withTokenEndpoint((request) => page([another()], `${urlOf(request).replace(/&n=.*/, '')}&n=${counter}`)),
  ),
  withNext('next is file:', () => 'file:///etc/passwd'),
  withNext('next leads to a private address', () => 'http://169.254.169.254/latest/meta-data/'),
  withNext('next carries credentials', () => 'http://user:pass@127.0.0.1:1/x'),
  withNext('next of 100 kB', (request) => `${urlOf(request)}&x=${'x'.repeat(100_000)}`),
  withNext('next is no URL', () => 'http://[::1'),
  leadingElsewhere('next leads to another origin', (origin, request) =>
    isTokenPath(request) ? tokenAnswer() : page(ITEMS, `${origin}${request.path}`),
  ),
  leadingElsewhere('every page redirects to another origin', (origin, request) =>
    isTokenPath(request) ? tokenAnswer() : redirect(`${origin}${request.path}`, 307),
  ),
  leadingElsewhere('the token endpoint redirects to another origin', (origin, { path }) =>
    redirect(`${origin}${path}`, 307),
  ),
  http(
    'redirects in a loop',
    withTokenEndpoint(({ path }) => redirect(path.endsWith('&again') ? path.slice(0, -6) : `${path}&again`)),
  ),
  rejecting('429, with Retry-After of a year', '31536000'),
  rejecting('429, with Retry-After of 300 digits', '9'.repeat(300)),
  rejecting('429, with a negative Retry-After', '-5', { slow: true }),
  rejecting('429, with a Retry-After of garbage', 'soon <script>', { slow: true }),
  rejecting('429, with a Retry-After in the past', 'Thu, 01 Jan 1970 00:00:00 GMT', { slow: true }),
  rejecting('429 for ever, without Retry-After', undefined, { slow: true }),
];
