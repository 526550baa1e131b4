/** Common OAuth client libraries get a token, which then traverses all pages. */
import { expect } from '@playwright/test';
import * as oauth from 'oauth4webapi';
import { ClientCredentials } from 'simple-oauth2';
import type { ReferenceTarget, TargetClient } from './target.ts';
import { screeningsUrl, test, walk } from '../testing.ts';

type TokenSource = (target: ReferenceTarget, client: TargetClient) => Promise<string>;

const LIBRARIES: [name: string, fetchToken: TokenSource][] = [
  [
    'oauth4webapi',
    async ({ authUrl }, { clientId, clientSecret }) => {
      const server: oauth.AuthorizationServer = { issuer: authUrl, token_endpoint: `${authUrl}/oauth/token` };
      const client: oauth.Client = { client_id: clientId };
      const response = await oauth.clientCredentialsGrantRequest(
        server,
        client,
        oauth.ClientSecretPost(clientSecret),
        new URLSearchParams({ scope: 'screenings.read' }),
        { [oauth.allowInsecureRequests]: true },
      );
      return (await oauth.processClientCredentialsResponse(server, client, response)).access_token;
    },
  ],
  [
    'simple-oauth2',
    async ({ authUrl }, { clientId, clientSecret }) => {
      const client = new ClientCredentials({
        client: { id: clientId, secret: clientSecret },
        auth: {
          tokenHost: authUrl,
          tokenPath: `${new URL(authUrl).pathname.replace(/\/$/, '')}/oauth/token`,
        },
        options: { authorizationMethod: 'body' },
      });
      const { token } = await client.getToken({ scope: 'screenings.read' });
      return String(token['access_token']);
    },
  ],
];

for (const [name, fetchToken] of LIBRARIES) {
  test(`${name} gets a token that traverses all pages`, async ({ server }) => {
    const target = server.target();
    const { primary } = target.clients;
    const token = await fetchToken(target, primary);
    const window = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z';
    const { items } = await walk(`${screeningsUrl(target, primary.tenantId)}?${window}`, token);
    expect(items).toHaveLength(3_499);
  });

  test(`${name} reports a wrong secret`, async ({ server }) => {
    const target = server.target();
    const wrong = { ...target.clients.primary, clientSecret: 'wrong' };
    await expect(fetchToken(target, wrong)).rejects.toThrow(/401|WWW-Authenticate/);
  });
}
