/** Correct servers on common stacks: effects of containers, frameworks and libraries around the service. */
import {
  answering,
  both,
  html,
  intercepting,
  isScreenings,
  isTokenRequest,
  middleware,
  nextQuery,
  onQuery,
  queryOf,
  refusal,
  requests,
  tokenClaims,
  tokenMembers,
  withoutBody,
} from '../run/alter.ts';
import { every, hasHeader, not, type Where } from '../run/conditions.ts';
import { UUID } from '../../engine/data/dataset.ts';
import type { Target } from '../../engine/target/target.ts';
import { authorizationOf, authorized } from '../faults/bearer.ts';
import { anySecret, forms, hasField, refusing, single } from '../faults/forms.ts';
import type { ServiceRequest } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import type { Groups } from './variant.ts';

/** Rejected by Tomcat and Spring's firewall: characters outside RFC 3986, and ambiguous paths. */
const isUnparsable = (target: string): boolean =>
  /[^\w\-.~!$&'()*+,;=:@/?%]|%(?![0-9a-f]{2})/i.test(target) ||
  /;|\\|\/\/|%(2f|5c|25|0|1|7f)/i.test(target.split('?')[0]!);

/** Reads parameters like another parser; undefined leaves the text unchanged. */
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

/** Parses `10.0`, `+5`, `1e1`, `1_0`, Arabic digits and surrounding blanks as integers. */
function lenientInteger(text: string): string | undefined {
  try {
    const digits = decodeURIComponent(text.replaceAll('+', ' '))
      .trim()
      .replaceAll(/(?<=\d)_(?=\d)/g, '')
      .replaceAll(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
    return /^[+-]?\d+(\.0*)?(e\+?\d)?$/i.test(digits) && !/^-?\d+$/.test(text)
      ? String(/[.e]/i.test(digits) ? Number(digits) : BigInt(digits.replace('+', '')))
      : undefined;
  } catch {
    return undefined;
  }
}

/** Answers matching requests with a page of HTML, before the service. */
const blocked = (status: number, where: Where): ServerOptions =>
  intercepting(() => html(status, 'Blocked'), where);

/** Answers 403 to tenants whose spelling matches, for any valid token. */
const forbidding = (spelling: RegExp): ServerOptions =>
  middleware(() => async (request, next) => {
    const answer = await next(request);
    return answer.status !== 401 && spelling.test(request.path) ? refusal('403 forbidden') : answer;
  });

const withCapitals = (target: Target): Target => ({
  ...target,
  clients: Object.fromEntries(
    Object.entries(target.clients).map(([name, client]) => [
      name,
      client.tenantId ? { ...client, tenantId: client.tenantId.toUpperCase() } : client,
    ]),
  ) as typeof target.clients,
});

const UUID_FORMS =
  /\/tenants\/(?:urn:uuid:|%7B|%22|\(|%20)?(\w{8})-?(\w{4})-?(\w{4})-?(\w{4})-?(\w{12})(?:%7D|%22|\)|%20)?\//i;

/** In base64url, one of these is `--` wherever the text begins. */
const DASHES = 'ﾀ ﾀ  ﾀ';

/** Longer than any page; added to only one in twenty of the largest pages because it is slow to read. */
const LONG_LIST = JSON.stringify(Array.from({ length: 1_100 }, () => 'x'.repeat(1_000)));

/** AWS WAF and IIS accept 2,048 octets of a query. */
const LONGEST_QUERY = 2_048;
const COOKIES = ['a', 'b', 'c'].map((name) => ['set-cookie', `${name}=${name.repeat(3_000)}`] as const);
const isLong = ({ headers, path }: ServiceRequest): boolean =>
  path.length > LONGEST_QUERY || Object.values(headers).some((value) => value.length > 8_000);

/** The length of a request as uWSGI counts it: the query twice, each field with its lengths, and 300 for its own fields. */
const uwsgiLength = ({ path, headers }: ServiceRequest): number =>
  Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + value.length + 9,
    300 + path.length + path.replace(/^[^?]*/, '').length,
  );

export const stacks: Groups = {
  'in a servlet container': {
    'a container that answers 400 with HTML to what RFC 3986 does not allow in a request line': blocked(
      400,
      ({ path }) => isUnparsable(path),
    ),
    'a gateway that answers 403 with HTML to control characters in a query or a form': blocked(
      403,
      ({ path, body }) => /%[01][0-9a-f]/i.test(`${path} ${body.toString('latin1')}`),
    ),
    'credentials outside of printable ASCII are invalid_request': refusing('400 invalid_request', (_, form) =>
      ['client_id', 'client_secret'].some((name) => /[^ -~]/.test(form.get(name)?.join('') ?? '')),
    ),
    // Like @node-oauth/oauth2-server.
    'a grant_type that is neither a name nor an absolute URI is invalid_request': refusing(
      '400 invalid_request',
      (_, form) =>
        form.get('grant_type')?.some((text) => !/^([\w.-]*$|[a-z][a-z0-9+.-]+:)/i.test(text)) ?? false,
    ),
    'credentials of another shape than those that are issued are invalid_request': refusing(
      '400 invalid_request',
      (_, form) => {
        const isOdd = (name: string, shape: RegExp): boolean =>
          form.get(name)?.some((text) => !shape.test(text)) ?? false;
        return isOdd('client_id', /^[a-z]+-[a-z]{6}$/i) || isOdd('client_secret', /^[\w-]{32}$/);
      },
    ),
    'a route that knows UUIDs in lower case alone': answering(
      () => html(404, 'Not Found'),
      ({ path }) => /\/tenants\/[^/]*[A-F]/.test(path),
    ),
    // Rack builds nested parameters and refuses a name that is both.
    'a parser that answers 400 with HTML to a query with from and from[]': blocked(400, (request) => {
      const names = [...queryOf(request).keys()];
      return names.some((name) => names.includes(name.replace(/\[.*/s, '')) && name.includes('['));
    }),
    'a firewall that answers 403 with HTML to a comment in SQL, and to page sizes at the limits of 32 bits':
      both(
        tokenClaims(() => ({ department: DASHES })),
        blocked(403, ({ path, body, headers }) => {
          const text = `${path.split('?')[1]} ${headers['cookie']} ${body.toString('latin1')}`;
          return /--|pageSize=-?214748364[78](?!\d)/.test(text);
        }),
      ),
    'a balancer that answers health checks itself': intercepting(
      () => html(200, 'OK'),
      hasHeader('user-agent', /kube-probe|HealthCheck/),
    ),
    'a gateway that answers 403 with HTML where there is no cookie of the target file': {
      server: blocked(403, not(hasHeader('cookie', /preview=1/))),
      target: (target) => ({ ...target, headers: { cookie: 'preview=1' } }),
    },
    // Like mod_security with many hosting companies.
    'a firewall that answers 406 with HTML where there is no User-Agent or no Accept': blocked(
      406,
      ({ headers }) => headers['user-agent'] === undefined || headers['accept'] === undefined,
    ),
    'an X-Request-Id that is no UUID is 400': intercepting(
      () => refusal('400 invalid_request'),
      every(hasHeader('x-request-id'), not(hasHeader('x-request-id', UUID))),
    ),
  },
  'on a permissive framework': {
    'uWSGI with nginx in front: 502 with HTML for requests of more than 4 kB, the query counted twice':
      blocked(502, (request) => uwsgiLength(request) > 4_096),
    'a catch-all handler that answers 500 to other methods, and to paths that have no route': intercepting(
      () => refusal('500 internal_error'),
      (request) =>
        isTokenRequest(request)
          ? request.method !== 'POST'
          : !isScreenings(request) || request.method !== 'GET',
    ),
    'blanks of every kind around a grant_type or scope are cut off': both(
      ...['grant_type', 'scope'].map((name) => single(name, (text) => text.trim())),
    ),
    // Of Rails, to which it is a browser's.
    'an Accept with */* after another type is 406 with HTML': blocked(406, hasHeader('accept', /,\s*\*\/\*/)),
    'refresh_token: null': tokenMembers(() => ({ refresh_token: null })),
    'a resource that is unknown is invalid_target': refusing('400 invalid_target', hasField('resource')),
    'spellings of an integer are read as the number': readAs('pageSize|from_id', lenientInteger),
    'next names pageSize as the request spelled it': nextQuery((query, _, asked) => {
      if (asked.has('pageSize')) query.set('pageSize', asked.get('pageSize')!);
    }),
    // The UUID parsers of Python, Go, Rust and .NET accept these forms.
    'every form of a UUID names the tenant': requests((request) => ({
      ...request,
      path: request.path.replace(UUID_FORMS, '/tenants/$1-$2-$3-$4-$5/'),
    })),
    'a blank before an offset is read as the raw + that it was': readAs('from|to', (text) =>
      /(?:%20|\+)\d\d(:|%3A)\d\d$/i.test(text)
        ? text.replace(/(?:%20|\+)(?=\d\d(:|%3A)\d\d$)/i, '%2B')
        : undefined,
    ),
    // Of WSGI, such as Django.
    'the body of a token request without Content-Length is empty': refusing(
      '400 invalid_request',
      not(hasHeader('content-length')),
    ),
    // Ruby's split.
    'an empty part at the end of a token is dropped': authorized((value) => value.replace(/\.$/, '')),
    // Nimbus and jose4j.
    'characters after a signature that base64url does not have are skipped': authorized((value) =>
      value.replace(/[^\w.~+/= -]+$/, ''),
    ),
    // Of Tornado.
    'control characters are read as blanks': requests((request) => ({
      ...request,
      path: request.path.replace(/(?<=\?.*)%(0[0-8ef]|1[\da-f])/gi, '%20'),
      body: Buffer.from(request.body.toString('latin1').replace(/%(0[0-8ef]|1[\da-f])/gi, '%20'), 'latin1'),
    })),
    // Akka HTTP and Pekko HTTP.
    'a token without a space after Bearer is read': authorized((value) =>
      value.replace(/^bearer(?=\S)/i, '$& '),
    ),
    // Rocket.
    'scope[0] is read where scope is missing': forms((form) => {
      if (!form.has('scope') && form.has('scope[0]')) form.set('scope', form.get('scope[0]')!);
    }),
    // Ktor.
    'an Authorization header that RFC 9110 does not allow is malformed': answering(
      '400 invalid_request',
      hasHeader('authorization', /^[^ ]+:|"/),
    ),
    'a long list in addition to items': middleware(() => {
      let largest = 0;
      return async (request, next) => {
        const answer = await next(request);
        const isLargest = isScreenings(request) && /pageSize=1000(&|$)/.test(request.path);
        return isLargest && answer.status === 200 && ++largest % 20 === 1
          ? { ...answer, body: `${String(answer.body).slice(0, -1)},"trace":${LONG_LIST}}` }
          : answer;
      };
    }),
    // Of Undertow, Netty and RESTEasy. Last, since those above write a form anew.
    'a parser of forms that answers 500 with HTML to a % without two digits, and to a pair without a name':
      intercepting(
        () => html(500, 'Internal Server Error'),
        (request) =>
          isTokenRequest(request) && /%(?![0-9a-f]{2})|(^|&)=/i.test(request.body.toString('latin1')),
      ),
  },
  // Of Spring MVC, Spring Security and its authorization server, without any configuration.
  'on Spring': {
    'name[] is read where name is missing': both(
      onQuery((query) => {
        for (const name of ['from', 'to'])
          if (!query.has(name) && query.has(`${name}[]`)) query.set(name, query.get(`${name}[]`)!);
      }),
      forms((form) => {
        for (const name of ['grant_type', 'client_id'])
          if (!form.has(name) && form.has(`${name}[]`)) form.set(name, form.get(`${name}[]`)!);
      }),
    ),
    'the scheme DPoP is 401 without a body': intercepting(
      () => withoutBody(401, [['www-authenticate', 'DPoP algs="RS256 ES256"']]),
      hasHeader('authorization', /^DPoP /),
    ),
    'a grant that other clients may use is missing its own parameters': refusing(
      '400 invalid_request',
      hasField('grant_type', /^(authorization_code|refresh_token|urn:.*:(device_code|token-exchange))$/),
    ),
    'Basic that cannot be decoded is 401 without a body': intercepting(
      () => withoutBody(401, [['www-authenticate', 'Basic realm="Realm"']]),
      (request) => isTokenRequest(request) && /^Basic .*[^\w+/=]/.test(authorizationOf(request)),
    ),
    'bcrypt repeats a secret after its NUL': anySecret((shown, real) => shown === `${real}\0${real}`),
    'a grant that other clients may use is unauthorized_client': refusing(
      '400 unauthorized_client',
      hasField('grant_type', /^(password|urn:.*:jwt-bearer)$/),
    ),
  },
  // Firewalls check User-Agent and lengths; identity providers put groups into tokens.
  'after a firewall': {
    'a firewall that answers 403 with HTML where there is no User-Agent': blocked(
      403,
      not(hasHeader('user-agent')),
    ),
    // Of mod_security in Apache httpd.
    'a firewall that answers 500 with HTML to JSON that ends early': blocked(
      500,
      ({ headers, body }) => headers['content-type'] === 'application/json' && /^[{["]$/.test(String(body)),
    ),
    // Like Akamai, unless it is allowed there.
    'a gateway that answers 501 with HTML to a token request in chunks': blocked(
      501,
      every(isTokenRequest, hasHeader('transfer-encoding')),
    ),
    'a firewall that answers 403 with HTML to repeated parameters': blocked(403, (request) => {
      const names = isScreenings(request) ? [...queryOf(request).keys()] : [];
      return new Set(names).size < names.length;
    }),
    'a firewall that answers 403 with HTML to much punctuation in a parameter': blocked(
      403,
      ({ path, body, headers }) => {
        const form = headers['content-type']?.includes('urlencoded') ? body.toString() : '';
        const pairs = [...new URLSearchParams(path.split('?')[1]), ...new URLSearchParams(form)];
        return pairs.some((pair) => (pair.join('').match(/[!"#$%&()*;=?@[\]^{|}~]/g) ?? []).length > 3);
      },
    ),
    'a firewall that answers 403 with HTML to a parameter that is encoded twice': blocked(403, (request) =>
      /%25[\da-f]{2}/i.test(`${request.path} ${request.body.toString('latin1')}`),
    ),
    'a firewall that answers 403 with HTML to an operator of a database in a parameter': blocked(
      403,
      (request) => /\[\$|%5B%24/i.test(`${request.path} ${request.body.toString('latin1')}`),
    ),
    'a gateway that answers 400 with HTML to headers that only gateways set': blocked(400, ({ headers }) =>
      Object.keys(headers).some((name) => /^x-(forwarded|original|http-method)/.test(name)),
    ),
    'a gateway that answers 400 with HTML to malformed headers': blocked(
      400,
      ({ headers }) =>
        headers['if-modified-since'] === 'yesterday' || /(^|;)\s*=/.test(headers['cookie'] ?? ''),
    ),
    'every other path is the page of a single-page application': intercepting(
      () => html(200, 'Screenings'),
      (request) => request.method === 'GET' && !isScreenings(request) && !isTokenRequest(request),
    ),
    'tokens of 5 kB, cookies of 9 kB, and HTML for headers of 8 kB and for queries of 2 kB': both(
      tokenClaims(() => ({ groups: ['g'.repeat(3_400)] })),
      middleware(() => async (request, next) => {
        if (isLong(request)) return html(request.path.length > LONGEST_QUERY ? 403 : 431, 'Request Too Long');
        const answer = await next(request);
        return { ...answer, headers: [...answer.headers, ...COOKIES] };
      }),
    ),
  },
  'with tenants in capitals': {
    'tenant ids in capitals in token and target file, compared as text': {
      server: {
        ...tokenClaims(({ tenant_id }) => ({ tenant_id: String(tenant_id).toUpperCase() })),
        ...forbidding(/\/tenants\/[^/]*[a-f]/),
      },
      target: withCapitals,
    },
  },
  'with a target file in capitals': {
    'tenant ids are compared as text, and in capitals in the target file alone': {
      server: forbidding(/\/tenants\/[^/]*[A-F]/),
      target: withCapitals,
    },
  },
};
