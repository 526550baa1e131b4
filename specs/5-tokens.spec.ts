/** Section 5: tokens that the issuer did not sign, and expired tokens. */
import { about, test } from '../fixtures/test.ts';
import {
  bearerOf,
  constantPart,
  cutTo,
  encodePart,
  followedBy,
  inOtherCase,
  partsOf,
  withAlteredSignature,
  withExchangedLetters,
  withLetter,
  withMembers,
  type TokenPart,
} from '../engine/client/altered-token.ts';
import type { Authorization } from '../engine/client/exchange.ts';
import { integerOf, member } from '../engine/client/json.ts';
import { claimsOf, readToken } from '../engine/client/token.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { UNAUTHENTICATED, refused } from '../engine/checks/errors.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { sayToken } from '../engine/checks/token.ts';
import { formEncode } from '../engine/client/transport.ts';
import { OFFERED_SCOPE } from '../engine/client/client.ts';
import { replaced } from '../engine/run/rules/wrong-credentials.ts';
import { pagesOfEverySize } from '../engine/run/walk/standard-walks.ts';
import {
  LATER_MINT,
  refusalOf,
  refusedToken,
  secondsLeft,
  tokenHeader,
} from '../engine/run/observers/valid-token.ts';
import { readable, tokenRequestOf } from '../engine/run/rules/raw-request.ts';
import { askOwnPath, expiredUnauthenticated, unauthenticated } from '../engine/run/rules/unauthenticated.ts';
import { Untested } from '../engine/errors.ts';

/** Both numbers of the signature are 0, which some verifiers accept for any key (CVE-2022-21449). */
const ES256_ZEROS = constantPart(Buffer.alloc(64).toString('base64url'));

/** Claims are altered one at a time: if the signature covers only some claims, one of these is unprotected. */
const CLAIMS_AT_MOST = 8;

/** Another value for each further claim. `tenant_id` is altered in a request on the other tenant's path instead. */
function otherClaims(token: string): [name: string, value: unknown][] {
  const claims = Object.entries(claimsOf(token) ?? {});
  return claims
    .flatMap(([name, value]): [string, unknown][] => {
      if (['exp', 'sub', 'tenant_id'].includes(name)) return [];
      if (typeof value === 'string') return [[name, `${value} kit`]];
      const number = integerOf(value);
      return number === undefined ? [] : [[name, Number(number) - 1]];
    })
    .slice(0, CLAIMS_AT_MOST);
}

/** Jetty takes it for the valid token, if the connection has carried that one: it caches headers without regard to case. */
const OTHER_CASE = 'signature in the other case';

/** Bearer tokens with one alteration each. */
function alteredBearers(token: string): Authorization[] {
  const [head, payload, signature] = partsOf(token);
  const exp = Number(integerOf(member(claimsOf(token), 'exp')) ?? 0n);
  const none = constantPart('');
  const unsigned = (alg: string): TokenPart => withMembers(head, { alg });
  const altered: [label: string, ...parts: TokenPart[]][] = [
    ['payload altered: exp a day later', head, withMembers(payload, { exp: exp + 86_400 }), signature],
    ['payload altered: another sub', head, withMembers(payload, { sub: 'somebody-else' }), signature],
    ...otherClaims(token).map(([name, value]): (typeof altered)[number] => [
      `payload altered: ${name}`,
      head,
      withMembers(payload, { [name]: value }),
      signature,
    ]),
    ['header altered: a member more', withMembers(head, { kit: true }), payload, signature],
    ['signature altered in its middle', ...withAlteredSignature([head, payload, signature])],
    [
      'two letters near the beginning of its signature exchanged',
      head,
      payload,
      withExchangedLetters(signature),
    ],
    // The last letter may contain padding bits, so it is not altered.
    ['signature altered near its end', head, payload, withLetter(signature, signature.text.length - 4, 'A')],
    [OTHER_CASE, head, payload, inOtherCase(signature)],
    ['four more letters after the signature', head, payload, followedBy(signature, 'AAAA')],
    // Some verifiers read only the first three or the last three parts.
    ['a fourth part', head, payload, followedBy(signature, '.kit')],
    ['a part before the header', constantPart(`kit.${head.text}`), payload, signature],
    ['signature cut short', head, payload, cutTo(signature, signature.text.length >> 1)],
    ['signature removed', head, payload, none],
    ['signature removed, and the dot before it', head, payload],
    ['signature of zeros', head, payload, constantPart('A'.repeat(signature.text.length))],
    ['alg: ES256, signature of zeros', withMembers(head, { alg: 'ES256' }), payload, ES256_ZEROS],
    ['alg: none, no signature', unsigned('none'), payload, none],
    ['alg: None, no signature', unsigned('None'), payload, none],
    ['alg: NONE, no signature', unsigned('NONE'), payload, none],
    ['alg: nOnE, no signature', unsigned('nOnE'), payload, none],
    ['no alg, no signature', withMembers(head, { alg: undefined }), payload, none],
    ['alg: none, the old signature', unsigned('none'), payload, signature],
    ['an unknown alg, the old signature', withMembers(head, { alg: 'XS256' }), payload, signature],
    ['alg: HS256, the old signature', withMembers(head, { alg: 'HS256', kid: 'kit' }), payload, signature],
  ];
  const bearers = altered
    .filter(([, ...parts]) => parts.map(({ text }) => text).join('.') !== token)
    .map(([label, ...parts]) => ({ ...bearerOf(parts, label), isAlone: label === OTHER_CASE }));
  // A gateway that compares the scheme with its capital may let what it does not know pass.
  const small = bearerOf(
    withAlteredSignature([head, payload, signature]),
    'signature altered in its middle',
    'bearer',
  );
  return [...bearers, small];
}

/** What OAuth servers of other profiles accept for a client_secret: RFC 7523, 2.2 and, after a proxy, RFC 8705, 2.1. */
function unsignedAssertion(clientId: string, audience: string): [name: string, value: string][] {
  const exp = Math.floor(Date.now() / 1000) + 300;
  const claims = { iss: clientId, sub: clientId, aud: audience, jti: String(exp), exp };
  return [
    ['client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'],
    ['client_assertion', `${encodePart({ alg: 'none' })}.${encodePart(claims)}.`],
  ];
}

const certified = (clientId: string): Record<string, string> => ({
  ...{ 'x-ssl-client-verify': 'SUCCESS', 'ssl-client-verify': 'SUCCESS' },
  ...{ 'x-ssl-client-s-dn': `CN=${clientId}`, 'ssl-client-subject-dn': `CN=${clientId}` },
  ...{ 'x-ssl-client-cn': clientId, 'x-client-id': clientId, 'x-remote-user': clientId },
});

/** There is no refresh token (rule 5): only the client's secret yields a new token. */
test(
  'no token: an access token, an unsigned assertion or headers of gateways in place of the client_secret',
  about('7.1-invalid_request-missing', { needs: 'token', access: 'guesses', isSupplement: true }),
  async ({ kit }) => {
    const token = await kit.token();
    const { clientId } = kit.target.clients.primary;
    const form = kit.client.validForm('primary').filter(([name]) => name !== 'client_secret');
    const request = tokenRequestOf(kit, formEncode(form));
    const asserted = formEncode([...form, ...unsignedAssertion(clientId, request.url)]);
    const headers = { ...request.headers, ...certified(encodeURIComponent(clientId)) };
    for (const [what, changed] of [
      ['a token', { ...request, authorization: tokenHeader(token, 'of primary') }],
      ['an unsigned assertion', { ...request, body: asserted, suspicious: true }],
      ['headers of gateways', { ...request, headers, suspicious: true }],
    ] as const) {
      const exchange = await kit.send(changed);
      const judge: Judge = (answer) => readToken(answer) && differs('400 invalid_request', sayToken(answer));
      kit.check('7.1-invalid_request-missing', exchange, judge, `${what} in place of the secret`);
      await kit.client.mint('primary');
    }
  },
);

/** Uses a token before and after another one is minted: most 401s on an unexpired token are caused by a later mint. */
test(
  'a token is accepted after a later one was issued',
  about('5-valid-token', { needs: 'page' }),
  async ({ kit }) => {
    await kit.page(SOME_WINDOW);
    const token = await kit.token();
    await kit.checkAll({ id: '5-valid-token', cause: LATER_MINT }, async () => {
      const before = await askOwnPath(kit, tokenHeader(token, 'before a later mint'));
      await kit.client.mint();
      const after = await askOwnPath(kit, tokenHeader(token, 'after a later mint'));
      // A token that was already rejected before the mint is reported by the request that met it.
      if (before.status === 401 || after.status !== 401 || secondsLeft(kit, token, after) <= 0)
        return undefined;
      return { ...refusedToken(kit, after, token, ', after a later one had been minted'), exchange: after };
    });
  },
);

/** The granted scope may be a part of the requested one (rule 7). */
test(
  'a token of a part of the requested scopes is accepted',
  about('5-valid-token', { needs: 'page', access: 'reads late', isSupplement: true }),
  async ({ kit }) => {
    const form = replaced(kit.client.validForm('primary'), 'scope', `${OFFERED_SCOPE} openid`);
    const token = readToken(await kit.send(kit.client.tokenRequest(form)));
    if (!token) return;
    await kit.checkAll({ id: '5-valid-token', cause: 'a part of the requested scopes' }, () =>
      refusalOf(kit, token, 'of a part of the requested scopes', ', although the scope was granted'),
    );
  },
);

test(
  'a token is accepted for pages of every size',
  about('5-valid-token', { isSupplement: true }),
  ({ kit }) => pagesOfEverySize(kit),
);

/** Uses the first token of the run again, at the end of the run. */
test(
  'the first token of the run is accepted at its end',
  about('5-valid-token', { needs: 'page', access: 'disturbs' }),
  async ({ kit }) => {
    const { firstMint } = kit.client;
    const token = firstMint && readToken(firstMint);
    if (!token) return;
    if (kit.ledger.findings.some(({ id, cause }) => id === '5-valid-token' && cause === LATER_MINT)) return;
    const age = Math.round((Date.now() - firstMint.startedAtMs) / 1000);
    await kit.checkAll({ id: '5-valid-token', cause: 'the first token' }, () =>
      refusalOf(kit, token, 'the first one of the run', `, ${age} s after it was issued`),
    );
  },
);

test(
  'unauthenticated: a token with an altered header, payload or signature',
  about('5-tampered', { needs: 'page', access: 'reads late' }),
  async ({ kit }) => {
    const { text, claims } = await kit.token();
    if (!claims) throw new Untested('the access token is not a JWT, so it cannot be altered');
    // Sent with the valid token first: a verification result cached by part of the token would show.
    await kit.page(SOME_WINDOW);
    for (const bearer of alteredBearers(text)) await unauthenticated(kit, '5-tampered', bearer);
    const [head, payload, signature] = partsOf(text);
    const skipped = bearerOf(
      [head, payload, followedBy(signature, '!')],
      'a letter that is not of base64url',
    );
    kit.ledger.observe('letter-after-signature', String((await askOwnPath(kit, skipped)).status));
    const { secondTenant } = kit.target.clients;
    if (!secondTenant) return;
    // Another tenant's id on that tenant's own path, so that only the signature is wrong.
    const tenantId = await kit.tenantOf('secondTenant');
    const authorization = bearerOf(
      [head, withMembers(payload, { tenant_id: tenantId }), signature],
      "payload altered: another tenant's tenant_id",
    );
    const exchange = readable(await kit.send(kit.request(tenantId, SOME_WINDOW, authorization)));
    kit.check('5-tampered', exchange, refused(kit, UNAUTHENTICATED), 'forged tenant');
  },
);

test(
  'unauthenticated: an expired token',
  about('5-expired', { needs: 'page', access: 'disturbs' }),
  ({ kit }) => expiredUnauthenticated(kit),
);
