import { expect } from '@playwright/test';
import { decodeJwt } from 'jose';
import { goodForm, requestToken, send, test } from '../testing.ts';
import type { ClientRole } from '../run/provisioning.ts';

test('4.1 a valid request mints a token as in 2.1 and 2.2', async ({ server }) => {
  const target = server.target();
  const { primary } = target.clients;
  const { status, headers, json } = await requestToken(target, goodForm(primary));
  const body = json as { access_token: string };

  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/json');
  expect(headers.get('cache-control')).toBe('no-store');
  expect(json).toEqual({
    access_token: body.access_token,
    token_type: 'Bearer',
    expires_in: 3600,
    scope: 'screenings.read',
  });
  const claims = decodeJwt(body.access_token);
  expect(claims).toMatchObject({
    iss: target.authUrl,
    aud: target.baseUrl,
    sub: primary.clientId,
    scope: 'screenings.read',
    tenant_id: primary.tenantId,
  });
  expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3600);
});

type Change = (form: Record<string, string>) => Record<string, string> | [string, string][];
const without =
  (name: string): Change =>
  (form) =>
    Object.entries(form).filter(([key]) => key !== name);
const twice =
  (name: string): Change =>
  (form) => [...Object.entries(form), [name, form[name] ?? '']];
const withValue =
  (name: string, value: string): Change =>
  (form) => ({ ...form, [name]: value });

const REQUIRED = ['grant_type', 'client_id', 'client_secret', 'scope'];
const REFUSALS: [title: string, change: Change, status: number, error: string][] = [
  ...REQUIRED.map((name): [string, Change, number, string] => [
    `without ${name}`,
    without(name),
    400,
    'invalid_request',
  ]),
  ...REQUIRED.map((name): [string, Change, number, string] => [
    `with an empty ${name}`,
    withValue(name, ''),
    400,
    'invalid_request',
  ]),
  ...REQUIRED.map((name): [string, Change, number, string] => [
    `with ${name} twice`,
    twice(name),
    400,
    'invalid_request',
  ]),
  ['of another grant', withValue('grant_type', 'password'), 400, 'unsupported_grant_type'],
  ['with a wrong secret', withValue('client_secret', 'wrong'), 401, 'invalid_client'],
  ['of an unknown client', withValue('client_id', 'nobody'), 401, 'invalid_client'],
  ['for a scope that no client has', withValue('scope', 'screenings.write'), 400, 'invalid_scope'],
];

for (const [title, change, status, error] of REFUSALS) {
  test(`7.1 a request ${title}: ${status} ${error}`, async ({ server }) => {
    const target = server.target();
    const answer = await requestToken(target, change(goodForm(target.clients.primary)));
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({ error, error_description: expect.any(String) });
    expect(answer.headers.has('www-authenticate')).toBe(status === 401);
  });
}

const ROLES: [role: ClientRole, error: string][] = [
  ['unauthorized', 'unauthorized_client'],
  ['invalidGrant', 'invalid_grant'],
];
for (const [role, error] of ROLES) {
  test(`7.1 the client ${role}: 400 ${error}`, async ({ server }) => {
    const target = server.target();
    const client = target.clients[role];
    const { status, json } = await requestToken(target, goodForm(client ?? target.clients.primary));
    expect({ status, json }).toEqual({ status: 400, json: { error, error_description: expect.any(String) } });
  });
}

test('7.1 of several scopes, those that the client has are granted', async ({ server }) => {
  const target = server.target();
  const form = { ...goodForm(target.clients.primary), scope: 'other screenings.read' };
  expect((await requestToken(target, form)).json).toMatchObject({ scope: 'screenings.read' });
});

const BODIES: [title: string, contentType: string, body: string | Uint8Array][] = [
  ['JSON', 'application/json', '{"grant_type":"client_credentials"}'],
  ['no form by its type', 'text/plain', 'grant_type=client_credentials'],
  ['broken percent-encoding', 'application/x-www-form-urlencoded', 'grant_type=%zz&client_id=%'],
  ['octets that are no UTF-8', 'application/x-www-form-urlencoded', new Uint8Array([0x61, 0x3d, 0xff])],
  ['nothing', 'application/x-www-form-urlencoded', ''],
];
for (const [title, contentType, body] of BODIES) {
  test(`7.1 a body of ${title}: 400 invalid_request`, async ({ server }) => {
    const { status, json } = await send(`${server.authUrl}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body,
    });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: 'invalid_request' });
  });
}

test('4.1 credentials in the query mint nothing', async ({ server }) => {
  const target = server.target();
  const query = new URLSearchParams(goodForm(target.clients.primary));
  const { status } = await send(`${target.authUrl}/oauth/token?${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  expect(status).toBe(400);
});

test('a secret that was right once does not open the door to a wrong one', async ({ server }) => {
  const target = server.target();
  const form = goodForm(target.clients.primary);
  expect((await requestToken(target, form)).status).toBe(200);
  expect((await requestToken(target, { ...form, client_secret: 'wrong' })).status).toBe(401);
  expect((await requestToken(target, form)).status).toBe(200);
});
