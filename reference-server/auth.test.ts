import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from '@playwright/test';
import * as oauth from 'oauth4webapi';
import { screeningsUrl } from '../engine/client/page.ts';
import { createTokenIssuer } from './auth.ts';
import type { TokenClaims } from './parts.ts';
import { test, walk } from './testing.ts';

const NOW = 1_800_000_000;
const CLAIMS: TokenClaims = {
  iss: 'https://auth.example',
  aud: 'https://api.example',
  sub: 'client',
  iat: NOW,
  exp: NOW + 3_600,
  scope: 'screenings.read',
  tenant_id: '00000000-0000-4000-8000-000000000001',
};
const issuerOf = (changes: { issuer?: string; audience?: string; signingKeyPem?: string } = {}) =>
  createTokenIssuer({ issuer: CLAIMS.iss, audience: CLAIMS.aud, ...changes });
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

test('rejects a key of an unsupported curve and names the curve', () => {
  const signingKeyPem = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey);
  expect(() => issuerOf({ signingKeyPem })).toThrow(/^cannot sign tokens with a key of type ec secp384r1:/);
});

test('accepts a token until exp, verified before or not', async () => {
  const tokens = issuerOf();
  const token = await tokens.mint(CLAIMS);
  for (let time = 0; time < 2; time += 1) {
    expect(await tokens.verify(token, CLAIMS.exp)).toBeUndefined();
    expect(await tokens.verify(token, CLAIMS.exp - 1)).toEqual(CLAIMS);
  }
});

test('rejects a token for another issuer or audience', async () => {
  const signingKeyPem = pemOf(generateKeyPairSync('ed25519').privateKey);
  const token = await issuerOf({ signingKeyPem }).mint(CLAIMS);
  expect(await issuerOf({ signingKeyPem }).verify(token, NOW)).toEqual(CLAIMS);
  for (const change of [{ issuer: 'https://other.example' }, { audience: 'https://other.example' }])
    expect(await issuerOf({ signingKeyPem, ...change }).verify(token, NOW)).toBeUndefined();
});

test('an OAuth client library gets a token for all pages, and reports a wrong secret', async ({ server }) => {
  const target = server.target();
  const { primary } = target.clients;
  const issuer: oauth.AuthorizationServer = {
    issuer: target.authUrl,
    token_endpoint: `${target.authUrl}/oauth/token`,
  };
  const client: oauth.Client = { client_id: primary.clientId };
  const fetchToken = async (secret: string): Promise<string> => {
    const response = await oauth.clientCredentialsGrantRequest(
      issuer,
      client,
      oauth.ClientSecretPost(secret),
      new URLSearchParams({ scope: 'screenings.read' }),
      { [oauth.allowInsecureRequests]: true },
    );
    return (await oauth.processClientCredentialsResponse(issuer, client, response)).access_token;
  };
  const url = `${screeningsUrl(target.baseUrl, primary.tenantId)}?from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z`;
  expect(await walk(url, await fetchToken(primary.clientSecret))).toHaveLength(3_499);
  await expect(fetchToken('wrong')).rejects.toThrow(/401|WWW-Authenticate/);
});
