/** Mistakes in authentication and authorization (section 5). */
import type { Mistake } from './mistake.ts';

export const access: readonly Mistake[] = [
  {
    name: 'a request without a proper token is served',
    what: 'No Authorization header, another scheme, a bare token or a token in the query is answered with a page, in some cases only on later pages or for unusual paths.',
    why: 'The check depends on a route pattern, a cache or a later page bypasses it, or a library looks for tokens in several places (OAuth servers that still take access_token in the query).',
    fix: 'Authenticate in one place before any routing, deny by default, and read only the header.',
    right: `Spring: http.authorizeHttpRequests(a -> a.anyRequest().authenticated())
new DefaultBearerTokenResolver().setAllowUriQueryParameter(false)`,
    breaks: '5-missing 5-scheme 5-query-token 5-garbage',
    when: /^answered 2/m,
  },
  {
    name: 'a refused token is not answered 401 unauthenticated',
    what: 'A missing, broken, forged or expired token gets 400, 403, 404 or a crash; clients that request a new token on a 401 never do.',
    why: 'The filter throws before the error handler of the API is active, or access denied (403) is thrown for anonymous users too.',
    fix: 'Map every failure of authentication to 401 unauthenticated with WWW-Authenticate.',
    right: `Spring: .exceptionHandling(e -> e.authenticationEntryPoint((rq, rs, x) -> problem(rs, 401, "unauthenticated")))
WWW-Authenticate: Bearer error="invalid_token"`,
    breaks: '5-garbage 5-missing 5-scheme 5-expired 5-forged 5-tampered 5-query-token',
    when: /^answered [45]/m,
  },
  {
    name: 'the signature of a token is not verified',
    what: 'A token whose payload, header or signature was altered is accepted: an attacker can write any claims.',
    why: 'The token is decoded and not verified (jwt.decode in place of verify), alg is taken from the token itself, or a cache of verified tokens is keyed by a part of the token.',
    fix: 'Verify with a fixed list of algorithms, key caches by the whole token, and compare bytes.',
    right: `jose: await jwtVerify(token, jwks, { issuer, audience, algorithms: ['ES256'] })
PyJWT: jwt.decode(token, key, algorithms=["ES256"], audience=AUD)`,
    breaks: '5-tampered 5-forged 5-garbage',
    when: /^answered 2/m,
  },
  {
    name: 'a key that comes with the token is believed',
    what: 'A token signed with any key is accepted because its header names the key (jwk, jku, x5c, kid), or because an empty or public value passes for the secret.',
    why: 'The library resolves keys from the header, or a lookup by kid falls back to an empty secret.',
    fix: 'Take keys from the issuer’s configured JWKS only, and reject an unknown kid.',
    right: `const jwks = createRemoteJWKSet(new URL(config.jwksUri)); // and no jku, jwk, x5u or x5c of the token`,
    breaks: '5-forged',
    when: /^answered 2/m,
  },
  {
    name: 'how long a token is good is not its exp',
    what: 'Expired tokens are accepted, or good ones refused before their exp: after a number of requests, after a later mint, or now and then.',
    why: 'exp is not checked or with a leeway meant for clocks; tokens are kept in a store that evicts them, or that holds one per client.',
    fix: 'Check exp with a leeway of seconds, and nothing else about age.',
    right: `jwtVerify(token, keys, { clockTolerance: '30s' })   -- JWTs need no store to be valid in`,
    breaks: '5-expired 5-valid-token',
  },
  {
    name: 'the path’s tenant is not held against the token’s',
    what: 'Another tenant’s path is served, with its screenings, the own ones or an empty page, or is refused with another status than 403.',
    why: 'The tenant of the query comes from the token and that of the path is ignored, or the comparison is loose (prefix, case, aliases such as me, a cached decision).',
    fix: 'Parse both as UUIDs, compare them on every request, and answer 403 forbidden before looking anything up.',
    right: `if (!uuid(path.tenantId).equals(token.tenantId)) throw forbidden();`,
    breaks: '5-forbidden-unknown 5-forbidden 4.2-r3-one-tenant',
  },
  {
    name: 'a token is another tenant’s',
    what: 'Credentials of one tenant yield a token with the tenant_id of another.',
    why: 'Tokens are cached without the client in the key, or the tenant is taken from the request.',
    fix: 'Derive the tenant from the client alone; key caches by client_id.',
    right: `claims.tenant_id = clients.byId(clientId).tenantId   -- never request.tenant`,
    breaks: '5-one-tenant 2.2-tenant_id',
  },
  {
    name: 'secrets or tokens come back in answers',
    what: 'An error body, a header or a cookie repeats the client_secret or the token; the logs often do too.',
    why: 'Debug error pages, request dumps, session cookies of a framework.',
    fix: 'Turn debug output off, and build errors from fixed texts.',
    right: `{"error": "invalid_client", "error_description": "the client is unknown or its secret is wrong"}`,
    breaks: '5-no-echo',
  },
  {
    name: 'the Bearer scheme is not handled as HTTP has it',
    what: 'bearer in another case is refused, or a 401 has no WWW-Authenticate.',
    why: 'The header is compared with startsWith("Bearer "), or the error response is written by hand.',
    fix: 'Compare the scheme without regard to case; send a challenge with each 401.',
    right: `/^bearer +(\\S+)$/i   ·   WWW-Authenticate: Bearer realm="screenings"`,
    breaks: '5-scheme-case 5-challenge',
  },
];
