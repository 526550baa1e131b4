import { expect } from '@playwright/test';
import * as oauth from 'oauth4webapi';
import { screeningsUrl, test, walk } from '../testing.ts';

test('a common OAuth client library gets a token that traverses all pages, and reports a wrong secret', async ({
  server,
}) => {
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
  const window = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z';
  const url = `${screeningsUrl(target, primary.tenantId)}?${window}`;
  expect((await walk(url, await fetchToken(primary.clientSecret))).items).toHaveLength(3_499);
  await expect(fetchToken('wrong')).rejects.toThrow(/401|WWW-Authenticate/);
});
