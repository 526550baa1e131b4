/** Section 5: who may ask. */
import { errorAnswer, jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { TokenClaims } from '../parts.ts';
import { instead, isScreenings, middleware, queryOf, requests } from '../run/alter.ts';
import type { Fault } from './fault.ts';

const OTHERS = [
  '5-missing',
  '5-scheme',
  '5-garbage',
  '5-tampered',
  '5-expired',
  '5-query-token',
  '7.2-unauthenticated',
  '7.2-body',
] as const;

const authorizationOf = ({ headers }: ServiceRequest): string => headers['authorization'] ?? '';
export const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

/** Without looking at the signature. */
export function payloadOf(token: string): TokenClaims | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    return typeof parsed === 'object' && parsed !== null && 'tenant_id' in parsed
      ? (parsed as TokenClaims)
      : undefined;
  } catch {
    return undefined;
  }
}

export const headerOf = (token: string): { alg?: string } => {
  try {
    return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { alg?: string };
  } catch {
    return {};
  }
};

export type Verify = (
  token: string,
  nowSeconds: number,
  real: (token: string, nowSeconds: number) => Promise<TokenClaims | undefined>,
) => Promise<TokenClaims | undefined>;

export const verifying = (make: () => Verify): NonNullable<Fault['server']> => ({
  wrapParts: (parts) => {
    const verify = make();
    const real = parts.tokens.verify.bind(parts.tokens);
    return {
      ...parts,
      tokens: { ...parts.tokens, verify: (token, nowSeconds) => verify(token, nowSeconds, real) },
    };
  },
});

/** Claims once verified are kept, under something less than the whole token. */
function keptBy(keyOf: (token: string) => string): NonNullable<Fault['server']> {
  return verifying(() => {
    const kept = new Map<string, TokenClaims>();
    return async (token, nowSeconds, real) => {
      const key = keyOf(token);
      const claims = kept.get(key) ?? (await real(token, nowSeconds));
      if (claims) kept.set(key, claims);
      return claims;
    };
  });
}

const as = (change: (authorization: string) => string): NonNullable<Fault['server']> =>
  requests((request) =>
    isScreenings(request) && request.headers['authorization'] !== undefined
      ? { ...request, headers: { ...request.headers, authorization: change(authorizationOf(request)) } }
      : request,
  );

/** A token is found in another place where the header is missing. */
const elsewhere = (tokenOf: (request: ServiceRequest) => string | undefined): NonNullable<Fault['server']> =>
  requests((request) => {
    const token = authorizationOf(request) === '' && isScreenings(request) ? tokenOf(request) : undefined;
    return token === undefined
      ? request
      : { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
  });

export const authentication: readonly Fault[] = [
  {
    name: 'no Authorization header is served an empty page',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    mayTrip: ['5-query-token'],
    server: instead((request) => (authorizationOf(request) === '' ? emptyPage() : undefined)),
  },
  {
    name: 'a token in a cookie is accepted',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    server: elsewhere(({ headers }) => /\btoken=([^;]+)/.exec(headers['cookie'] ?? '')?.[1]),
  },
  {
    name: 'a token in X-Access-Token is accepted',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    server: elsewhere(({ headers }) => headers['x-access-token']),
  },
  {
    name: 'no Authorization header is 403',
    trips: { '5-missing': /401 unauthenticated.*403/ },
    mayTrip: ['5-query-token'],
    server: instead((request) =>
      authorizationOf(request) === '' ? errorAnswer(403, 'forbidden', 'no token') : undefined,
    ),
  },
  {
    name: 'no Authorization header is 400',
    trips: { '5-missing': /401 unauthenticated.*400/ },
    mayTrip: ['5-query-token'],
    server: instead((request) =>
      authorizationOf(request) === '' ? errorAnswer(400, 'invalid_request', 'no token') : undefined,
    ),
  },
  {
    name: 'a token without a scheme is accepted',
    trips: { '5-scheme': /401 unauthenticated.*200/ },
    server: as((value) => (/^\S+\.\S+\.\S+$/.test(value) ? `Bearer ${value}` : value)),
  },
  {
    name: 'the scheme is not looked at',
    trips: { '5-scheme': /401 unauthenticated.*200/ },
    server: as((value) => value.replace(/^\S+ (?=\S+\.\S+\.\S+$)/, 'Bearer ')),
  },
  {
    name: 'any scheme that begins with Bearer is accepted',
    trips: { '5-scheme': /401 unauthenticated.*200/ },
    server: as((value) => value.replace(/^Bearer\S+ /, 'Bearer ')),
  },
  {
    name: 'client credentials by Basic are accepted in place of a token',
    trips: { '5-scheme': /401 unauthenticated.*200/ },
    server: instead((request) => {
      const basic = /^Basic (\S+)$/.exec(authorizationOf(request))?.[1] ?? '';
      return Buffer.from(basic, 'base64').toString().startsWith('primary-client:') ? emptyPage() : undefined;
    }),
  },
  {
    name: 'an empty bearer is 400',
    trips: { '5-scheme': /401 unauthenticated.*400/ },
    server: instead((request) =>
      /^Bearer ?$/.test(authorizationOf(request))
        ? errorAnswer(400, 'invalid_request', 'empty token')
        : undefined,
    ),
  },
  {
    name: 'a string that is no token is a crash: 500',
    trips: { '5-garbage': /401 unauthenticated.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ },
    mayTrip: [...OTHERS],
    server: instead((request) =>
      /^Bearer [^.]+$/.test(authorizationOf(request))
        ? errorAnswer(500, 'internal_error', 'jwt malformed')
        : undefined,
    ),
  },
  {
    name: 'a string that is no token is 403',
    trips: { '5-garbage': /401 unauthenticated.*403/ },
    mayTrip: ['5-tampered'],
    server: verifiedElse(
      errorAnswer(403, 'forbidden', 'invalid token'),
      /^Bearer [\w-]*(\.[\w-]?\.[\w-]?)?$/,
    ),
  },
  {
    name: 'the claims are read, the signature is not',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    mayTrip: ['5-forged', '5-garbage', '5-forbidden'],
    server: verifying(() => async (token, nowSeconds) => {
      const claims = payloadOf(token);
      return claims && claims.exp > nowSeconds ? claims : undefined;
    }),
  },
  {
    name: 'alg none is accepted',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: verifying(
      () => async (token, nowSeconds, real) =>
        headerOf(token).alg === 'none' ? payloadOf(token) : real(token, nowSeconds),
    ),
  },
  {
    name: 'alg none is accepted where it is spelt None',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: verifying(
      () => async (token, nowSeconds, real) =>
        headerOf(token).alg === 'None' ? payloadOf(token) : real(token, nowSeconds),
    ),
  },
  {
    name: 'a token without signature is accepted',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: verifying(
      () => async (token, nowSeconds, real) =>
        token.endsWith('.') && headerOf(token).alg !== 'none' ? payloadOf(token) : real(token, nowSeconds),
    ),
  },
  {
    name: 'verified tokens are kept by their signature alone',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.split('.')[2] ?? ''),
  },
  {
    name: 'verified tokens are kept by their header and payload',
    mayTrip: ['5-forged'],
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.split('.').slice(0, 2).join('.')),
  },
  {
    name: 'verified tokens are kept by their payload and signature',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.split('.').slice(1).join('.')),
  },
  {
    name: 'the signature covers who may see what until when, and nothing else',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => {
      const { tenant_id, sub, exp } = payloadOf(token) ?? {};
      return JSON.stringify([token.split('.')[2], tenant_id, sub, exp]);
    }),
  },
  {
    name: 'verified tokens are kept by the path that they were shown at',
    trips: { '5-forbidden': /403 forbidden.*200/ },
    mayTrip: [...OTHERS, '4.2-r3-one-tenant'],
    bare: false,
    server: keptByPath(),
  },
  {
    name: 'signatures compared without regard to case',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.replace(/[^.]*$/, (signature) => signature.toLowerCase())),
  },
  {
    name: 'what stands after a signature is not read',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.replace(/^([^.]*\.[^.]*\.[^.]{86})[^.]*$/, '$1')),
  },
  {
    name: 'signatures are compared as far as they are given',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: keptBy((token) => token.replace(/^([^.]*\.[^.]*\.[^.]{20})[^.]*$/, '$1')),
  },
  {
    name: 'later pages ask for no token',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    mayTrip: ['5-query-token'],
    server: instead((request) =>
      queryOf(request).has('from_id') && authorizationOf(request) === '' ? emptyPage() : undefined,
    ),
  },
  {
    name: 'later pages are served to any tenant',
    trips: { '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ },
    bare: false,
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      return answer.status === 403 && queryOf(request).has('from_id') ? emptyPage() : answer;
    }),
  },
  {
    name: 'exp is not looked at',
    trips: { '5-expired': /401 unauthenticated.*200/ },
    bare: false,
    server: verifying(
      () => async (token, nowSeconds, real) =>
        real(token, Math.min(nowSeconds, (payloadOf(token)?.exp ?? Infinity) - 1)),
    ),
  },
  {
    name: 'a leeway of a day on exp',
    trips: { '5-expired': /401 unauthenticated.*200/ },
    bare: false,
    server: verifying(() => async (token, nowSeconds, real) => {
      const exp = payloadOf(token)?.exp ?? 0;
      return real(token, exp < nowSeconds && exp + 86_400 > nowSeconds ? exp - 1 : nowSeconds);
    }),
  },
  {
    name: 'an expired token is 403',
    trips: { '5-expired': /401 unauthenticated.*403/ },
    bare: false,
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const exp = payloadOf(authorizationOf(request))?.exp ?? Infinity;
      return answer.status === 401 && exp < Date.now() / 1000 - 60
        ? errorAnswer(403, 'forbidden', 'expired')
        : answer;
    }),
  },
  {
    name: 'access_token in the query is accepted',
    trips: { '5-query-token': /401 unauthenticated.*200/ },
    server: fromQuery('access_token'),
  },
  {
    name: 'token in the query is accepted',
    trips: { '5-query-token': /401 unauthenticated.*200/ },
    server: fromQuery('token'),
  },
];

/** Answers requests whose token matches a pattern by itself. */
function verifiedElse(answer: ServiceAnswer, pattern: RegExp): NonNullable<Fault['server']> {
  return instead((request) => (pattern.test(authorizationOf(request)) ? answer : undefined));
}

function fromQuery(name: string): NonNullable<Fault['server']> {
  return requests((request) => {
    const token = queryOf(request).get(name);
    return isScreenings(request) && token !== null && authorizationOf(request) === ''
      ? { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
      : request;
  });
}

function keptByPath(): NonNullable<Fault['server']> {
  return middleware(() => {
    const kept = new Map<string, string>();
    return async (request, next) => {
      const authorization = authorizationOf(request);
      if (!isScreenings(request) || !/^Bearer \S+\.\S+\.\S+$/.test(authorization)) return next(request);
      const path = request.path.split('?')[0] ?? '';
      const answer = await next(request);
      if (answer.status === 200) kept.set(path, authorization);
      const known = kept.get(path);
      return answer.status === 403 && known
        ? next({ ...request, headers: { ...request.headers, authorization: known } })
        : answer;
    };
  });
}
