/** Section 5: tokens signed with a key that is not the issuer's. */
import { about, test } from '../fixtures/test.ts';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader, type JWK } from 'jose';
import {
  asymmetricForgeries,
  confusedForgeries,
  symmetricForgeries,
  withHostedForgeries,
  type Forgery,
} from '../engine/client/forged-token.ts';
import { isObject, member } from '../engine/client/json.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { NOT_FOUND, UNAUTHENTICATED, notServed, refused } from '../engine/checks/errors.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
import { forgedBearer } from '../engine/run/rules/unauthenticated.ts';
import { Untested } from '../engine/errors.ts';

/** Paths below authUrl where issuers publish their keys. */
const KEY_SETS = ['/.well-known/jwks.json', '/oauth/jwks', '/jwks.json', '/jwks'];
const METADATA = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'];

/** Servers limit header fields (RFC 6585, 5), some to 4 kB of all of them; certificates are long. */
const LONGEST_BEARER = 3_000;

async function checkRefused(kit: Kit, forgeries: readonly Forgery[]): Promise<void> {
  const own = await kit.tenantOf();
  const longest = Math.max(LONGEST_BEARER, (await kit.token()).text.length);
  await mapConcurrently(forgeries, async ({ label, token, tenantId = own }) => {
    const authorization = forgedBearer(token, `Bearer (token ${label})`);
    const suspicious = token.length > longest;
    const exchange = await kit.send({ ...kit.request(tenantId, SOME_WINDOW, authorization), suspicious });
    // A server may look up the tenant of the path first.
    const accepted = tenantId === UNKNOWN_TENANT ? [UNAUTHENTICATED, NOT_FOUND] : [UNAUTHENTICATED];
    const judge = suspicious ? notServed('401 unauthenticated') : refused(kit, ...accepted);
    kit.check('5-forged', exchange, judge, label);
  });
}

async function jwtOf(kit: Kit): Promise<string> {
  const { text, claims } = await kit.token();
  if (!claims) throw new Untested('the access token is not a JWT, so it cannot be forged');
  return text;
}

/** The JSON below authUrl, requested without a token; undefined if there is none. */
async function fetchPublished(kit: Kit, url: string): Promise<unknown> {
  if (new URL(url).origin !== new URL(kit.target.authUrl).origin) return undefined;
  const { status, text } = await kit.send({
    channel: 'rest',
    method: 'GET',
    url,
    headers: { ...kit.target.headers, accept: 'application/json' },
    authorization: { kind: 'none' },
    offPath: true,
  });
  try {
    return status === 200 ? (JSON.parse(text) as unknown) : undefined;
  } catch {
    return undefined;
  }
}

/** The public key with which the issuer's tokens verify; undefined if it publishes none. */
async function publicKeyOf(kit: Kit, token: string): Promise<KeyObject | undefined> {
  const { authUrl } = kit.target;
  const addresses: string[] = [];
  for (const path of METADATA) {
    const metadata = await fetchPublished(kit, `${authUrl}${path}`);
    const uri = isObject(metadata as never) ? member(metadata as never, 'jwks_uri') : undefined;
    if (typeof uri === 'string' && URL.canParse(uri)) addresses.push(uri);
  }
  const { kid } = decodeProtectedHeader(token);
  for (const url of addresses.length > 0 ? addresses : KEY_SETS.map((path) => `${authUrl}${path}`)) {
    const set = (await fetchPublished(kit, url)) as { keys?: unknown } | undefined;
    const keys = Array.isArray(set?.keys) ? set.keys.flatMap(keyOf) : [];
    // There may be others: for encryption, or the next one.
    const key = keys.find((one) => one.kid === kid) ?? keys[0];
    if (key) return key.key;
  }
  return undefined;
}

function keyOf(jwk: unknown): { kid: unknown; key: KeyObject }[] {
  try {
    return [{ kid: (jwk as JWK).kid, key: createPublicKey({ key: jwk as never, format: 'jwk' }) }];
  } catch {
    return [];
  }
}

test(
  'unauthenticated: tokens signed with a fresh key that their header names',
  about('5-forged', { needs: 'page', access: 'reads late' }),
  async ({ kit }) => {
    const token = await jwtOf(kit);
    const otherTenant = kit.target.clients.secondTenant ? await kit.tenantOf('secondTenant') : UNKNOWN_TENANT;
    await checkRefused(kit, await asymmetricForgeries(token, otherTenant));
    await withHostedForgeries(token, (forgeries) => checkRefused(kit, forgeries));
  },
);

test(
  'unauthenticated: tokens signed with an empty or guessable secret',
  about('5-forged', { needs: 'page', access: 'reads late' }),
  async ({ kit }) => checkRefused(kit, symmetricForgeries(await jwtOf(kit), kit.target.clients.primary)),
);

test(
  "unauthenticated: tokens signed with the issuer's public key as an HMAC secret",
  about('5-forged', { needs: 'page', access: 'reads late' }),
  async ({ kit }) => {
    const token = await jwtOf(kit);
    const key = await publicKeyOf(kit, token);
    if (key) await checkRefused(kit, confusedForgeries(token, key));
  },
);
