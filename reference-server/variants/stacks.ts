/** Right servers on common stacks: what containers, frameworks and libraries do before and beside the service. */
import { claims, instead, isScreenings, isTokenRequest, middleware, tokenBody } from '../run/alter.ts';
import { parseForm } from '../http/form.ts';
import { errorAnswer, jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import type { Variant } from './variant.ts';

const page = (status: number, title: string): ServiceAnswer => ({
  status,
  headers: [['content-type', 'text/html']],
  body: `<!doctype html><title>${title}</title><h1>${title}</h1>`,
});

/** Tomcat and Spring's firewall: what RFC 3986 does not allow, and in the path what a router may read twice. */
const isUnparsable = (target: string): boolean =>
  /[^\w\-.~!$&'()*+,;=:@/?%]|%(?![0-9a-f]{2})/i.test(target) ||
  /;|\\|\/\/|%(2f|5c|25|0|1|7f)/i.test(target.split('?')[0]!);

const formOf = (request: Parameters<typeof isTokenRequest>[0]): ReadonlyMap<string, readonly string[]> =>
  (isTokenRequest(request) && parseForm(request.body.toString())) || new Map<string, string[]>();

/** Parameters as another parser reads them; undefined where it reads the usual text. */
export const readAs = (names: string, read: (text: string) => string | undefined): ServerOptions =>
  middleware(() => (request, next) => {
    if (!isScreenings(request)) return next(request);
    const path = request.path.replace(
      new RegExp(`([?&])(${names})=([^&]*)(?=&|$)`, 'g'),
      (whole, before: string, name: string, value: string) => {
        const as = read(value);
        return as === undefined ? whole : as === '' ? before : `${before}${name}=${as}`;
      },
    );
    return next({ ...request, path: path.replace(/\?&+/, '?').replace(/&&+/g, '&').replace(/[?&]$/, '') });
  });

/** `10.0`, `+5`, `1e1`, Arabic digits and blanks around them denote integers. */
function denoted(text: string): string | undefined {
  try {
    const digits = decodeURIComponent(text.replaceAll('+', ' '))
      .trim()
      .replaceAll(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
    return /^[+-]?\d+(\.0*)?(e\+?\d)?$/i.test(digits) && !/^-?\d+$/.test(text)
      ? String(/[.e]/i.test(digits) ? Number(digits) : BigInt(digits.replace('+', '')))
      : undefined;
  } catch {
    return undefined;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const container: readonly Variant[] = [
  {
    name: 'a container that answers 400 with HTML to what RFC 3986 does not allow in a request line',
    server: middleware(
      () => (request, next) => (isUnparsable(request.path) ? page(400, 'Bad Request') : next(request)),
    ),
  },
  {
    name: 'a gateway that answers 403 with HTML to control characters in a query or a form',
    server: middleware(
      () => (request, next) =>
        /%[01][0-9a-f]/i.test(request.path) || /%[01][0-9a-f]/i.test(request.body.toString('latin1'))
          ? page(403, 'Forbidden')
          : next(request),
    ),
  },
  {
    name: 'credentials outside of printable ASCII are invalid_request',
    server: middleware(() => (request, next) => {
      const form = formOf(request);
      const odd = ['client_id', 'client_secret'].some((name) =>
        /[^ -~]/.test(form.get(name)?.join('') ?? ''),
      );
      return odd
        ? jsonAnswer(400, { error: 'invalid_request', error_description: 'malformed' })
        : next(request);
    }),
  },
  {
    name: 'a route that knows UUIDs in lower case alone',
    server: instead((request) =>
      /\/tenants\/[^/]*[A-F]/.test(request.path) ? page(404, 'Not Found') : undefined,
    ),
  },
  {
    name: 'an X-Request-Id that is no UUID is 400',
    server: middleware(() => (request, next) => {
      const id = request.headers['x-request-id'];
      return id === undefined || UUID.test(id)
        ? next(request)
        : errorAnswer(400, 'invalid_request', 'X-Request-Id must be a UUID');
    }),
  },
];

/** Longer than any page, on some of the largest ones: they are slow to read. */
const LONG_LIST = JSON.stringify(Array.from({ length: 1_100 }, () => 'x'.repeat(1_000)));

export const library: readonly Variant[] = [
  { name: 'refresh_token: null', server: tokenBody((body) => ({ ...body, refresh_token: null })) },
  {
    name: 'a resource that is unknown is invalid_target',
    server: middleware(
      () => (request, next) =>
        formOf(request).has('resource')
          ? jsonAnswer(400, { error: 'invalid_target', error_description: 'unknown resource' })
          : next(request),
    ),
  },
  {
    name: 'a long list beside items',
    server: middleware(() => {
      let asked = 0;
      return async (request, next) => {
        const answer = await next(request);
        const isLarge = isScreenings(request) && /pageSize=1000(&|$)/.test(request.path);
        return isLarge && answer.status === 200 && asked++ % 20 === 0
          ? { ...answer, body: `${String(answer.body).slice(0, -1)},"trace":${LONG_LIST}}` }
          : answer;
      };
    }),
  },
  {
    name: 'spellings of an integer are read as the number',
    server: readAs('pageSize|from_id', denoted),
  },
  {
    name: 'a blank before an offset is read as the raw + that it was',
    server: readAs('from|to', (text) =>
      /(?:%20|\+)\d\d(:|%3A)\d\d$/i.test(text)
        ? text.replace(/(?:%20|\+)(?=\d\d(:|%3A)\d\d$)/i, '%2B')
        : undefined,
    ),
  },
];

const isLong = ({ headers, path }: ServiceRequest): boolean =>
  path.length > 4_000 || Object.values(headers).some((value) => value.length > 8_000);

/** Firewalls look at User-Agent and at lengths; identity providers put groups into tokens. */
export const firewall: readonly Variant[] = [
  {
    name: 'a firewall that answers 403 with HTML where there is no User-Agent',
    server: middleware(
      () => (request, next) =>
        request.headers['user-agent'] === undefined ? page(403, 'Forbidden') : next(request),
    ),
  },
  {
    name: 'tokens of 5 kB, and HTML for headers of 8 kB and for URIs of 4 kB',
    server: {
      ...claims((original) => ({ ...original, groups: ['g'.repeat(3_400)] })),
      ...middleware(
        () => (request, next) =>
          isLong(request) ? page(request.path.length > 4_000 ? 414 : 431, 'Request Too Long') : next(request),
      ),
    },
  },
];

/** The token and the configuration spell the tenant alike, and the path has to. */
export const capitals: readonly Variant[] = [
  {
    name: 'tenant ids in capitals, compared as text',
    server: {
      ...claims((original) => ({ ...original, tenant_id: String(original['tenant_id']).toUpperCase() })),
      ...middleware(() => async (request, next) => {
        const answer = await next(request);
        return answer.status !== 401 && /\/tenants\/[^/]*[a-f]/.test(request.path)
          ? errorAnswer(403, 'forbidden', 'this token is for another tenant')
          : answer;
      }),
    },
    target: (target) => ({
      ...target,
      clients: Object.fromEntries(
        Object.entries(target.clients).map(([name, client]) => [
          name,
          client.tenantId ? { ...client, tenantId: client.tenantId.toUpperCase() } : client,
        ]),
      ) as typeof target.clients,
    }),
  },
];
