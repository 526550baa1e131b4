/** Section 5: tokens signed with a key that is not the issuer's. */
import { about, test } from '../fixtures/test.ts';
import {
  asymmetricForgeries,
  confusedForgeries,
  symmetricForgeries,
  withHostedForgeries,
  type Forgery,
} from '../engine/client/forged-token.ts';
import { member, type Json } from '../engine/client/json.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { NOT_FOUND, UNAUTHENTICATED, notServed, refused } from '../engine/checks/errors.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { readable, UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
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
    const request = { ...kit.request(tenantId, SOME_WINDOW, authorization), suspicious };
    const exchange = readable(await kit.send(request));
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
async function fetchPublished(kit: Kit, url: string): Promise<Json | undefined> {
  if (new URL(url).origin !== new URL(kit.target.authUrl).origin) return undefined;
  const { status, json } = await kit.send({
    channel: 'rest',
    method: 'GET',
    url,
    headers: { ...kit.target.headers, accept: 'application/json' },
    authorization: { kind: 'none' },
    offPath: true,
  });
  return status === 200 ? json : undefined;
}

/** The public keys that the issuer publishes. */
async function publishedKeys(kit: Kit): Promise<readonly Json[]> {
  const { authUrl } = kit.target;
  const addresses: string[] = [];
  for (const path of METADATA) {
    const uri = member(await fetchPublished(kit, `${authUrl}${path}`), 'jwks_uri');
    if (typeof uri === 'string' && URL.canParse(uri)) addresses.push(uri);
  }
  for (const url of addresses.length > 0 ? addresses : KEY_SETS.map((path) => `${authUrl}${path}`)) {
    const keys = member(await fetchPublished(kit, url), 'keys');
    if (Array.isArray(keys) && keys.length > 0) return keys;
  }
  return [];
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
    await checkRefused(kit, confusedForgeries(await jwtOf(kit), await publishedKeys(kit)));
  },
);
