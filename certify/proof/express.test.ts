/** An independent implementation on Express is conformant, so the kit does not depend on details of its reference server. */
import { createServer } from 'node:http';
import { expect } from '@playwright/test';
import express, { type NextFunction, type Request, type Response } from 'express';
import { jwtVerify, SignJWT } from 'jose';
import { compareInstants, parseInstant, type Instant } from '../../engine/data/instant.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { listenOn } from '../../reference-server/non-implementations/tools.ts';
import type { ScreeningStore } from '../../reference-server/parts.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { test } from '../../reference-server/testing.ts';
import { certify } from '../certify.ts';

const SECRET = 'a secret of the Express service';
const CLIENTS = new Map([
  ['express-1', TENANTS.primary],
  ['express-2', TENANTS.secondTenant],
]);
const KEY = new TextEncoder().encode('thirty-two octets of a symmetric key');

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(code);
  }
}

async function startExpress(store: ScreeningStore): Promise<AsyncDisposable & { readonly target: Target }> {
  const app = express();
  // With env `test`, the default error handler of Express prints nothing.
  app.set('env', 'test');
  const { origin, ...address } = await listenOn(createServer({ maxHeaderSize: 65_536 }, app));

  app.post(
    '/oauth/token',
    express.urlencoded({ extended: false, limit: '1mb' }),
    async (request: Request, response: Response) => {
      const body = (request.body ?? {}) as Record<string, string | string[]>;
      const values = ['grant_type', 'client_id', 'client_secret', 'scope'].map((name) => body[name]);
      if (!values.every((value) => typeof value === 'string' && value.trim() !== ''))
        throw new Refusal(400, 'invalid_request');
      if (Object.values(body).some(Array.isArray)) throw new Refusal(400, 'invalid_request');
      const [grant, id, secret, scope] = values as [string, string, string, string];
      if (grant !== 'client_credentials') throw new Refusal(400, 'unsupported_grant_type');
      const tenant_id = CLIENTS.get(id);
      if (!tenant_id || secret !== SECRET) throw new Refusal(401, 'invalid_client');
      if (!scope.split(' ').includes('screenings.read')) throw new Refusal(400, 'invalid_scope');
      const token = new SignJWT({ scope: 'screenings.read', tenant_id, aud: 'api' })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer(origin)
        .setSubject(id)
        .setIssuedAt()
        .setExpirationTime('1h');
      response.set('Cache-Control', 'no-store').json({
        access_token: await token.sign(KEY),
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'screenings.read',
      });
    },
  );

  app.get('/v1/tenants/:tenantId/screenings', async (request: Request, response: Response) => {
    const tenantId = String(request.params['tenantId']);
    const own = await tenantOf(request.get('authorization'));
    if (own === undefined) throw new Refusal(401, 'unauthenticated');
    if (own !== tenantId.toLowerCase()) throw new Refusal(403, 'forbidden');
    const { from, to, pageSize = '100', from_id } = request.query as Record<string, string | undefined>;
    const window = { from: timeOf(from), to: timeOf(to) };
    if (compareInstants(window.to, window.from) < 0) throw new Refusal(400, 'invalid_time_range');
    const size = integerOf(pageSize);
    if (size < 1n || size > 1000n) throw new Refusal(400, 'page_size_out_of_range');
    const after = from_id === undefined ? {} : { fromId: integerOf(from_id) };
    const { items, more } = await store.page({ tenantId: own, ...window, pageSize: Number(size), ...after });
    const last = items.at(-1);
    const query = { from: last?.testTime ?? '', to: to!, pageSize, from_id: String(last?.id) };
    const next = `${origin}/v1/tenants/${tenantId}/screenings?${new URLSearchParams(query)}`;
    if (more) response.set('Link', `<${next}>; rel="next"`);
    const links = JSON.stringify(more ? { next } : {});
    response.type('json').send(`{"items":[${items.map(({ json }) => json).join()}],"links":${links}}`);
  });

  app.use(() => Promise.reject(new Refusal(404, 'not_found')));
  app.use((error: Error & { status?: number }, { path }: Request, response: Response, _: NextFunction) => {
    const { status = 500 } = error;
    const scheme = path === '/oauth/token' ? 'Basic' : 'Bearer';
    const code = error instanceof Refusal ? error.code : status < 500 ? 'invalid_request' : 'internal_error';
    response
      .status(status)
      .set({ 'Cache-Control': 'no-store', ...(status === 401 ? { 'WWW-Authenticate': scheme } : {}) })
      .json({ code, error: code, error_description: error.message });
  });

  const client = (clientId: string) => ({ clientId, clientSecret: SECRET });
  const clients = { primary: client('express-1'), secondTenant: client('express-2') };
  return { ...address, target: await resolveTarget({ baseUrl: origin, authUrl: origin, clients }) };
}

function timeOf(text: unknown): Instant {
  const at = typeof text === 'string' ? parseInstant(text) : undefined;
  if (!at) throw new Refusal(400, 'invalid_time_range');
  return at;
}

function integerOf(text: unknown): bigint {
  if (typeof text !== 'string' || !/^-?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text))
    throw new Refusal(400, 'invalid_request');
  return BigInt(text);
}

async function tenantOf(authorization: string | undefined): Promise<string | undefined> {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined) return undefined;
  const verified = await jwtVerify(token, KEY, { algorithms: ['HS256'] }).catch(() => undefined);
  return verified && String(verified.payload['tenant_id']).toLowerCase();
}

const CONFORMANT = 'an implementation on Express is conformant';
test(CONFORMANT, byTurns(CONFORMANT), async ({ small }) => {
  await using service = await startExpress(small.store);
  const report = await certify(service.target, { seed: 1, runs: 2, pollingScale: 0.1 });
  expect([report.verdict, report.diagnosis], report.summary).toEqual(['conformant', []]);
});
