/** Dialects: equivalent spellings of a request (header names, headers irrelevant to the service, the query). */
import type { Client } from '../../client/client.ts';
import type { HeaderNames, RequestOut } from '../../client/exchange.ts';
import { nameOf, PARAMETERS, withPairs } from '../../client/page.ts';
import { percentEncoded } from '../../client/transport.ts';
import type { Combination, Factors } from '../state/covering-array.ts';

type Change = (request: RequestOut) => RequestOut;

interface Dialect {
  readonly name: string;
  /** The first level is the usual one. */
  readonly levels: Readonly<Record<string, Change>>;
  readonly of: (request: RequestOut) => string | undefined;
}

const named =
  (headerNames: HeaderNames | undefined): Change =>
  ({ headerNames: _, ...request }) =>
    headerNames ? { ...request, headerNames } : request;

const owning =
  (isAnonymous: boolean): Change =>
  ({ isAnonymous: _, ...request }) =>
    isAnonymous ? { ...request, isAnonymous } : request;

/** Levels that set a header to one of these values; undefined removes it, unless the target file names another one. */
function headerLevels(
  name: string,
  values: Readonly<Record<string, string | undefined>>,
): Pick<Dialect, 'levels' | 'of'> {
  const set =
    (value: string | undefined): Change =>
    (request) => {
      const { [name]: old, ...headers } = request.headers;
      const isLevel = Object.values(values).includes(old);
      if (value === undefined) return isLevel ? { ...request, headers } : request;
      return { ...request, headers: { ...headers, [name]: value } };
    };
  return {
    levels: Object.fromEntries(Object.entries(values).map(([level, value]) => [level, set(value)])),
    of: ({ headers }) => Object.keys(values).find((level) => values[level] === headers[name]),
  };
}

/** Changes the pairs of the query; keeps the meaning of the percent-encoding. */
const queried =
  (change: Parameters<typeof withPairs>[1]): Change =>
  (request) => ({ ...request, url: withPairs(request.url, change) });

const place = (pair: string): number => {
  const at = PARAMETERS.indexOf(nameOf(pair));
  return at < 0 ? PARAMETERS.length : at;
};

const UNRESERVED = /%(2d|54|5a)/gi;
const values = (change: (value: string) => string) =>
  queried((pairs) => pairs.map((pair) => pair.replace(/=.*/s, change)));

const usual = (request: RequestOut): RequestOut =>
  values((value) =>
    value.replace(UNRESERVED, decodeURIComponent).replace(/:|%3a/g, '%3A').replaceAll('%2b', '%2B'),
  )(queried((pairs) => [...pairs].sort((a, b) => place(a) - place(b)))(request));

const QUERIES: Readonly<Record<string, Change>> = {
  'parameters as documented': usual,
  'parameters in reverse': (request) => queried((pairs) => [...pairs].reverse())(usual(request)),
  // Hexadecimal digits have no case (RFC 3986, 2.1).
  'unreserved characters percent-encoded, in lower case': (request) =>
    values((value) =>
      value.replace(/%(3A|2B)/g, (octet) => octet.toLowerCase()).replace(/[-TZ]/g, percentEncoded),
    )(usual(request)),
  'colons as they are': (request) => values((value) => value.replace(/%3a/gi, ':'))(usual(request)),
};

function queryOf(request: RequestOut): string | undefined {
  const { url } = request;
  const [asDocumented] = Object.keys(QUERIES);
  if (url === usual(request).url) return asDocumented;
  return Object.keys(QUERIES).find((level) => QUERIES[level]!(request).url === url);
}

/** What browsers, caches, tracers and cookie jars add; it means nothing here. */
const FURTHER: Readonly<Record<string, string>> = {
  'cache-control': 'no-cache',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  cookie: 'consent=all',
  // Node's fetch sends it; where a combination has a level of Accept-Language, that one replaces it.
  'accept-language': '*',
};

const withoutFurther: Change = (request) => ({
  ...request,
  // The target file may name others, without which a gateway rejects the request.
  headers: Object.fromEntries(
    Object.entries(request.headers).filter(([name, value]) => FURTHER[name] !== value),
  ),
});

const PROTOCOL = 'protocol';

const acceptDialect: Dialect = {
  name: 'Accept',
  ...headerLevels('accept', {
    'Accept as documented': 'application/json',
    'Accept as a list': 'application/json, text/plain;q=0.5',
  }),
};

export const DIALECTS: readonly Dialect[] = [
  {
    name: 'header names',
    levels: {
      'header names in lower case': named(undefined),
      'header names with capitals': named('with capitals'),
      'header names in upper case': named('in upper case'),
    },
    of: ({ headerNames }) => `header names ${headerNames ?? 'in lower case'}`,
  },
  {
    name: 'own headers',
    levels: {
      'with User-Agent and X-Request-Id': owning(false),
      'without User-Agent and X-Request-Id': owning(true),
    },
    of: ({ isAnonymous }) => `${isAnonymous ? 'without' : 'with'} User-Agent and X-Request-Id`,
  },
  acceptDialect,
  {
    name: 'Accept-Encoding',
    ...headerLevels('accept-encoding', {
      'no Accept-Encoding': undefined,
      'Accept-Encoding: gzip, deflate': 'gzip, deflate',
      'Accept-Encoding: br, gzip': 'br, gzip, deflate',
      'Accept-Encoding: deflate': 'deflate',
    }),
  },
  {
    name: 'further headers',
    levels: {
      'no further headers': withoutFurther,
      'headers of other clients': (request) => ({
        ...request,
        headers: { ...FURTHER, ...request.headers },
      }),
    },
    of: ({ headers }) => (headers['traceparent'] ? 'headers of other clients' : 'no further headers'),
  },
  {
    name: 'Accept-Language',
    ...headerLevels('accept-language', {
      'no Accept-Language': undefined,
      // Its decimals have a comma, and the small letter of I is not i.
      'Accept-Language: tr-TR': 'tr-TR, tr;q=0.9',
      // This locale has its own digits and calendar.
      'Accept-Language: ar-SA': 'ar-SA',
    }),
  },
  { name: 'query', levels: QUERIES, of: queryOf },
  {
    name: PROTOCOL,
    levels: {
      'HTTP/1.1': ({ isHttp2: _, ...request }) => request,
      'HTTP/2': (request) => ({ ...request, isHttp2: true }),
    },
    of: ({ isHttp2 }) => (isHttp2 ? 'HTTP/2' : 'HTTP/1.1'),
  },
];

/** Factors by name; each level changes a request. */
type Leveled<Context extends unknown[]> = readonly {
  readonly name: string;
  readonly levels: Readonly<Record<string, (request: RequestOut, ...context: Context) => RequestOut>>;
}[];

/** The request with the levels of a combination; factors that it does not name get their usual level. */
export const withLevels = <Context extends unknown[]>(
  factors: Leveled<Context>,
  combination: Combination,
  request: RequestOut,
  ...context: Context
): RequestOut =>
  factors.reduce(
    (changed, { name, levels }) =>
      (levels[combination[name] ?? ''] ?? Object.values(levels)[0]!)(changed, ...context),
    request,
  );

/** Puts a request in the dialect of a combination. */
export const toDialect =
  (combination: Combination): Change =>
  (request) =>
    withLevels(DIALECTS, combination, request);

/** The levels of these factors, without those of the protocol if the target offers only one. */
export async function levelsOn<Context extends unknown[]>(
  client: Client,
  factors: Leveled<Context>,
): Promise<Factors> {
  const hasProtocols = await client.offersHttp2();
  const offered = factors.filter(({ name }) => hasProtocols || name !== PROTOCOL);
  return Object.fromEntries(offered.map(({ name, levels }) => [name, Object.keys(levels)]));
}

/** RFC 6749, appendix B defines the media type without parameters, so a charset must be ignored. */
const FORM = 'application/x-www-form-urlencoded';
const REVERSED = 'fields in reverse';
const ENCODED = 'unreserved characters percent-encoded';
const ANY_TYPE = 'Accept: */*, or none without own headers';

/** The factors of a token request; `body` only for requests that may be sent in chunks. */
export async function tokenFactorsOn(client: Client): Promise<Factors> {
  const { query: _, ...dialects } = await levelsOn(client, DIALECTS);
  return {
    ...dialects,
    // No Accept header is documented for this endpoint; curl accepts any type, and others send none.
    Accept: [...Object.keys(acceptDialect.levels), ANY_TYPE],
    form: ['fields as documented', REVERSED, ENCODED],
    type: [FORM, `${FORM}; charset=UTF-8`, `${FORM};charset=utf-8`],
  };
}

/** Puts a token request in the dialect of a combination of these factors. */
export const toTokenDialect =
  (combination: Combination): Change =>
  (request) => {
    const { form = [], headers, ...plain } = toDialect(combination)(request);
    const { accept: _, ...others } = headers;
    const ofAnyType = plain.isAnonymous ? others : { ...others, accept: '*/*' };
    return {
      ...plain,
      form: combination['form'] === REVERSED ? [...form].reverse() : form,
      isPercentEncoded: combination['form'] === ENCODED,
      headers: {
        ...(combination['Accept'] === ANY_TYPE ? ofAnyType : headers),
        'content-type': combination['type']!,
      },
    };
  };

/** The dialect levels of a combination. */
export const dialectsOf = (combination: Combination): string[] =>
  DIALECTS.flatMap(({ name }) => combination[name] ?? []);
