/** Mistakes in authentication, the separation of tenants, and the token endpoint (sections 2.1, 2.2, 4.1, 5 and 7.1). */
import type { Mistakes } from './mistake.ts';

export const access = {
  'a request without a proper token is served': {
    why: 'No Authorization header, another scheme, a bare token or a token in the query is answered with a page, in some cases only on later pages or for unusual paths. The check depends on a route pattern, a cache or a later page bypasses it, or a library looks for tokens in several places (OAuth servers that still take access_token in the query), or anywhere in the header (bearerToken of Laravel reads XBearer).',
    fix: 'Authenticate in one place before any routing, deny by default, and read only the header.',
    right: `Spring: http.authorizeHttpRequests(a -> a.anyRequest().authenticated())
new DefaultBearerTokenResolver().setAllowUriQueryParameter(false)`,
    breaks: '5-missing 5-scheme 5-query-token 5-garbage',
    when: /^answered 2/m,
  },
  'a refused token is not answered 401 unauthenticated': {
    why: 'A missing, broken, forged or expired token gets 400, 403, 404 or a crash; clients that request a new token on a 401 never do. The filter throws before the error handler of the API is active, or access denied (403) is thrown for anonymous users too.',
    fix: 'Map every failure of authentication to 401 unauthenticated with WWW-Authenticate.',
    right: `Spring: .exceptionHandling(e -> e.authenticationEntryPoint((rq, rs, x) -> problem(rs, 401, "unauthenticated")))
WWW-Authenticate: Bearer error="invalid_token"`,
    breaks: '5-garbage 5-missing 5-scheme 5-expired 5-forged 5-tampered 5-query-token',
    when: /^answered [45]/m,
  },
  'the signature of a token is not verified': {
    why: 'A token whose payload, header or signature was altered is accepted: an attacker can write any claims. The token is decoded and not verified (jwt.decode in place of verify), alg is taken from the token itself, or a cache of verified tokens is keyed by a part of the token.',
    fix: 'Verify with a fixed list of algorithms, key caches by the whole token, and compare bytes.',
    right: `jose: await jwtVerify(token, jwks, { issuer, audience, algorithms: ['ES256'] })
PyJWT: jwt.decode(token, key, algorithms=["ES256"], audience=AUD)`,
    breaks: '5-tampered 5-forged 5-garbage',
    when: /^answered 2/m,
  },
  'a key that comes with the token is believed': {
    why: 'A token signed with any key is accepted because its header names the key (jwk, jku, x5c, kid), or because an empty or public value passes for the secret. The library resolves keys from the header, or a lookup by kid falls back to an empty secret.',
    fix: 'Take keys from the issuer’s configured JWKS only, and reject an unknown kid.',
    right: `const jwks = createRemoteJWKSet(new URL(config.jwksUri)); // and no jku, jwk, x5u or x5c of the token`,
    breaks: '5-forged',
    when: /^answered 2/m,
  },
  'no token is accepted': {
    why: 'Also a request with a new token is answered 401, so no page is served. The API expects another issuer, audience or key than the token endpoint uses, or a proxy before it removes the Authorization header (Squid, Apache httpd before CGI).',
    fix: 'Give both the same issuer, audience and keys, and let the proxy pass the header on.',
    right: `Squid: cache_peer … login=PASSTHRU · Apache httpd: CGIPassAuth On`,
    breaks: '4.2-success',
    when: /^answered 401/m,
  },
  'how long a token is good is not its exp': {
    why: 'Expired tokens are accepted, or good ones refused before their exp: after a number of requests, after a later mint, or now and then. exp is not checked or with a leeway meant for clocks; tokens are kept in a store that evicts them, or that holds one per client.',
    fix: 'Check exp with a leeway of seconds, and nothing else about age.',
    right: `jwtVerify(token, keys, { clockTolerance: '30s' })   -- JWTs need no store to be valid in`,
    breaks: '5-expired 5-valid-token',
  },
  'the path’s tenant is not held against the token’s': {
    why: 'Another tenant’s path is served, with its screenings, the own ones or an empty page, or is refused with another status than 403. The tenant of the query comes from the token and that of the path is ignored, or the comparison is loose (prefix, case, aliases such as me, a cached decision).',
    fix: 'Parse both as UUIDs, compare them on every request, and answer 403 forbidden before looking anything up.',
    right: `if (!uuid(path.tenantId).equals(token.tenantId)) throw forbidden();`,
    breaks: '5-forbidden-unknown 5-forbidden 4.2-r3-one-tenant',
  },
  'a token is another tenant’s': {
    why: 'Credentials of one tenant yield a token with the tenant_id of another. Tokens are cached without the client in the key, or the tenant is taken from the request.',
    fix: 'Derive the tenant from the client alone; key caches by client_id.',
    right: `claims.tenant_id = clients.byId(clientId).tenantId   -- never request.tenant`,
    breaks: '5-one-tenant 2.2-tenant_id',
    when: /^got: tenant_id: "?UUID/m,
  },
  'secrets or tokens come back in answers': {
    why: 'An error body, a header or a cookie repeats the client_secret or the token; the logs often do too. Debug error pages, request dumps, session cookies of a framework.',
    fix: 'Turn debug output off, and build errors from fixed texts.',
    right: `{"error": "invalid_client", "error_description": "the client is unknown or its secret is wrong"}`,
    breaks: '5-no-echo',
  },
  'the Bearer scheme is not handled as HTTP has it': {
    why: 'bearer in another case is refused, or a 401 has no WWW-Authenticate. The header is compared with startsWith("Bearer "), or the error response is written by hand.',
    fix: 'Compare the scheme without regard to case; send a challenge with each 401.',
    right: `/^bearer +(\\S+)$/i   ·   WWW-Authenticate: Bearer realm="screenings"`,
    breaks: '5-scheme-case 5-challenge',
  },
} satisfies Mistakes;

// -- the token endpoint -------------------------------------------------------------------------------

export const tokenEndpoint = {
  'the plainest token request is not served': {
    why: 'No client gets a token. authUrl is the address of something else, a gateway asks for a key of its own, the client is not registered, or the endpoint fails.',
    fix: 'Send the curl line of the failure; compare authUrl, client_id and secret with the configuration, and look for the request id in the endpoint’s log.',
    right: `200 {"access_token": "<jwt>", "token_type": "Bearer", "expires_in": 3600, "scope": "screenings.read"}`,
    breaks: '4.1-success 7.2-no-unprovoked-5xx 7.1-body',
    when: /^got: the token endpoint answered #|^the same answer breaks 4\.1-success$/m,
  },
  'a member of the token response has another name, type or value': {
    why: 'access_token, token_type, scope or the status differ from what OAuth clients read, or a member is there that should not be (refresh_token). Names in the house style (camel case), a generic login endpoint on a new path, an identity provider’s defaults.',
    fix: 'Answer with the four members by their names, status 200.',
    right: `200 {"access_token": "<jwt>", "token_type": "Bearer", "expires_in": 3600, "scope": "screenings.read"}`,
    breaks: '2.1-access_token 2.1-token_type 2.1-scope 5-no-refresh-token 4.1-success',
  },
  'expires_in is not the seconds that are left': {
    why: 'expires_in is a string, in milliseconds, fixed while a kept token grows old, or contradicts exp; clients renew too late or far too often. A configuration value is printed in place of what is left of this token.',
    fix: 'Compute it from exp when the token is handed out.',
    right: `expires_in: Math.floor(claims.exp - Date.now() / 1000)`,
    breaks: '2.1-expires_in 2.1-expires_in-3600',
  },
  'a claim of the token is missing or another': {
    why: 'iss, aud, sub, iat, exp, scope or tenant_id is missing, of another type, or differs from section 2.2. The identity provider’s own claims are passed on: internal issuer, aud as an array, scp, numbers of rows, milliseconds.',
    fix: 'Map claims explicitly in the provider; times are integers of seconds.',
    right: `{"iss": "<auth_url>", "aud": "<api>", "sub": "<client_id>", "iat": 1767225600, "exp": 1767229200,
 "scope": "screenings.read", "tenant_id": "<uuid>"}`,
    breaks: '2.2-aud 2.2-iss 2.2-exp 2.2-iat 2.2-sub 2.2-sub-client 2.2-tenant_id 2.2-scope',
  },
  'the token endpoint’s headers are missing or others': {
    why: 'Cache-Control: no-store, the JSON Content-Type or the WWW-Authenticate of invalid_client is missing or another. The endpoint was written as a plain handler; security headers of a framework say no-cache, which still allows storing.',
    fix: 'Set them on every answer of the endpoint.',
    right: `Content-Type: application/json · Cache-Control: no-store · with 401: WWW-Authenticate: Basic realm="token"`,
    breaks: '4.1-no-store 4.1-content-type 7.1-invalid_client-challenge',
  },
  'client_id, secret, grant or scope are compared leniently': {
    why: 'A wrong value is accepted because it is like the right one: other case, a prefix, blanks around it; or it is not compared at all. Collations of the database that ignore case (MySQL, SQL Server) or trailing blanks, truncated columns or hashes (bcrypt beyond 72 bytes), trimming input filters (TrimStrings of Laravel, get_argument of Tornado).',
    fix: 'Compare exactly, byte by byte; secrets in constant time against a hash of the whole.',
    right: `crypto.timingSafeEqual(sha256(given), sha256(stored)) · MySQL: WHERE client_id = BINARY ?`,
    breaks:
      '7.1-invalid_client-secret 7.1-invalid_client-id 7.1-unsupported_grant_type 7.1-invalid_scope 7.1-invalid_request-empty',
    when: /^answered 200/m,
  },
  'a missing, empty or doubled parameter is made up for': {
    why: 'A token request without one of its four parameters, with an empty or a second value, earns a token or another error than invalid_request. Defaults for scope and grant_type, form parsers that keep the first or the last value, checks in the order in which the code needs them.',
    fix: 'Before anything else require each of the four exactly once and not empty: else 400 invalid_request.',
    right: `for (const name of REQUIRED) if (form.getAll(name).filter(Boolean).length !== 1) throw invalidRequest(name);`,
    breaks: '7.1-invalid_request-missing 7.1-invalid_request-duplicated 7.1-invalid_request-empty',
  },
  'a token request is read from where it must not be, or not as a form': {
    why: 'JSON bodies, the query string or GET mint tokens. One body parser for all types, or request.getParameter, which mixes query and form.',
    fix: 'Take POST with application/x-www-form-urlencoded only, and ignore parameters of the media type.',
    right: `if (mediaType(request) !== 'application/x-www-form-urlencoded') throw invalidRequest(); // query is never read`,
    breaks: '7.1-invalid_request-malformed 4.1-no-query-credentials 4.1-post-only',
  },
  'a valid token request is refused for what means nothing': {
    why: 'A token request is refused that differs from a served one only in a charset of its media type, its Accept, the order or percent-encoding of its fields, or headers of other clients; or because a wrong secret was sent before it. Content-Type or Accept is compared as a whole, a filter requires a header, or a lockout counts a single failure.',
    fix: 'Read the four fields by their names, compare media types without their parameters, and require no other header.',
    right: `if (mediaType(request) !== 'application/x-www-form-urlencoded') throw invalidRequest(); // and Accept is not read`,
    breaks: '4.1-success',
    when: /^answered 4/m,
  },
  'a refusal of the token endpoint has another status or error': {
    why: 'The error is not the one of RFC 6749, 5.2 for its cause, or comes with another status. Errors are mapped in one catch-all, a library has other statuses (go-oauth2: 401), or a gateway answers before the endpoint.',
    fix: 'Follow the table: invalid_client is 401, all others are 400.',
    right: `secret wrong, client unknown: 401 invalid_client · grant not allowed: 400 unauthorized_client
grant unusable: 400 invalid_grant · other grant_type: 400 unsupported_grant_type · scope not granted: 400 invalid_scope`,
    breaks:
      '7.1-invalid_client-secret 7.1-invalid_client-id 7.1-unauthorized_client 7.1-invalid_grant 7.1-invalid_scope 7.1-unsupported_grant_type 7.1-scope-subset',
    when: /^answered 4/m,
  },
  'token errors are not JSON with error and error_description': {
    why: 'The body of a 400 or 401 is plain text, a gateway’s page, or has its members elsewhere: OAuth clients cannot read why. The API’s own error format (problem details, envelopes) or the server’s default page is used.',
    fix: 'Write the two members at the top level on every refusal.',
    right: `400 {"error": "invalid_scope", "error_description": "not granted to this client"}`,
    breaks: '7.1-body',
  },
  'a scope or a client is granted what it must not have': {
    why: 'An unknown scope, an unknown grant or a client without the right gets a token, or a token with too much in it. The requested scope is copied into the token, an unknown one is dropped and nothing is left (oidc-provider), flags of the client are not read.',
    fix: 'Intersect what is requested with what the client has; an empty result is a refusal.',
    right: `const granted = requested.filter((scope) => client.scopes.includes(scope));
if (granted.length === 0) throw invalidScope(); // and before that: if (!client.grants.includes(grant)) throw unauthorizedClient()`,
    breaks:
      '2.1-scope 7.1-scope-subset 7.1-invalid_scope 2.2-scope 7.1-invalid_grant 7.1-unauthorized_client',
    when: /^answered 200|^got: scope: "/m,
  },
  'unknown parameters are refused': {
    why: 'resource, audience or another parameter that the endpoint does not know makes it fail, although RFC 6749, 3.2 requires to ignore it. Strict validation of input, or half support of RFC 8707.',
    fix: 'Ignore what is not known.',
    right: `const { grant_type, client_id, client_secret, scope } = form; // the rest is not looked at`,
    breaks: '4.1-unknown-parameters',
  },
} satisfies Mistakes;
