/** Checks real answers against openapi.yaml: every status is documented, every header and body matches its schema. */
import { readFile } from 'node:fs/promises';
import { expect } from '@playwright/test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { StoreUnavailable, TooManyGuesses } from '../parts.ts';
import type { ReferenceServer } from '../run/start.ts';
import { goodForm, mintToken, type Received, requestToken, screeningsUrl, send, test } from '../testing.ts';

interface Response {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: object }>>;
  readonly content: Readonly<Record<string, { readonly schema: object }>>;
}
type Operation = Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>;

const text = await readFile(new URL('openapi.yaml', import.meta.url), 'utf8');
const document = parse(text) as { readonly paths: Readonly<Record<string, Operation>> };
const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { int64: true } });
// References in the document are relative to its root.
ajv.addSchema({ $id: 'openapi:', ...document });

function resolve<Value>(value: Value & { readonly $ref?: string }): Value {
  const steps = value.$ref?.slice(2).split('/') ?? [];
  return steps.length === 0
    ? value
    : (steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document) as Value);
}

function expectValid(schema: object, value: unknown, what: string): void {
  const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi:#/')) as object;
  const validate = ajv.compile(absolute);
  expect(validate(value), `${what}: ${ajv.errorsText(validate.errors)}`).toBe(true);
}

const TOKEN = '/oauth/token';
const SCREENINGS = '/v1/tenants/{tenantId}/screenings';

function expectDocumented(path: string, method: string, answer: Received): void {
  const operation = document.paths[path]?.[method];
  const documented = operation?.responses[String(answer.status)];
  if (!documented) throw new Error(`${method} ${path} documents no ${answer.status}`);
  const response = resolve(documented);
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    const { required, schema } = resolve(header);
    const value = answer.headers.get(name);
    if (value === null) expect(required, `${name} is missing from a ${answer.status}`).not.toBe(true);
    else expectValid(schema, value, name);
  }
  const media = response.content[answer.headers.get('content-type') ?? ''];
  if (!media)
    throw new Error(`${answer.status} of ${path} documents no ${answer.headers.get('content-type')}`);
  expectValid(media.schema, answer.json, `${answer.status} of ${path}`);
}

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z';

interface Asked {
  readonly client?: 'primary' | 'notOnboarded';
  readonly tenantId?: string;
  readonly init?: RequestInit;
}

async function ask(
  server: ReferenceServer,
  query: string,
  { client = 'primary', tenantId, init = {} }: Asked = {},
): Promise<Received> {
  const target = server.target();
  const own = target.clients[client]!;
  const authorization = `Bearer ${await mintToken(target, own)}`;
  return send(`${screeningsUrl(target, tenantId ?? own.tenantId)}?${query}`, {
    headers: { authorization },
    ...init,
  });
}

const ANSWERS: [title: string, status: number, query: string, asked?: Asked][] = [
  ['a window of several pages', 200, WINDOW],
  ['pageSize=1000', 200, `${WINDOW}&pageSize=1000`],
  ['a window of one page', 200, 'from=2025-01-31T23:59:59Z&to=2025-02-01T00:00:00Z'],
  ['an empty window', 200, 'from=1999-01-01T00:00:00Z&to=1999-01-01T00:00:00Z'],
  ['no parameters', 400, ''],
  ['a wrong range', 400, 'from=x&to=y'],
  ['a wrong size', 400, `${WINDOW}&pageSize=0`],
  ['no token', 401, WINDOW, { init: { headers: {} } }],
  ['garbage for a token', 401, WINDOW, { init: { headers: { authorization: 'Bearer x' } } }],
  ['another tenant', 403, WINDOW, { tenantId: '00000000-0000-4000-8000-000000000000' }],
  ['a tenant that is not onboarded', 404, WINDOW, { client: 'notOnboarded' }],
  ['another method', 405, WINDOW, { init: { method: 'DELETE' } }],
  ['a long URI', 414, `${WINDOW}&x=${'x'.repeat(8_000)}`],
  ['long headers', 431, WINDOW, { init: { headers: { x: 'x'.repeat(40_000) } } }],
];
for (const [title, status, query, asked] of ANSWERS) {
  test(`answers ${title} with ${status} as documented`, async ({ server }) => {
    const answer = await ask(server, query, asked);
    expect(answer.status).toBe(status);
    expectDocumented(SCREENINGS, 'get', answer);
  });
}

test('answers requests beyond the rate limit with 429 as documented', async ({ start }) => {
  const server = await start({ rateLimit: { limit: 1, windowMs: 3_600_000, algorithm: 'token-bucket' } });
  await ask(server, WINDOW);
  const answer = await ask(server, WINDOW);
  expect(answer.status).toBe(429);
  expectDocumented(SCREENINGS, 'get', answer);
});

const FAILURES: [status: number, error: Error][] = [
  [500, new Error('deliberately, by a test')],
  [503, new StoreUnavailable('deliberately, by a test')],
];
for (const [status, error] of FAILURES) {
  test(`answers ${error.name} of the store with ${status} as documented`, async ({ start }) => {
    const server = await start({
      wrapParts: (parts) => ({ ...parts, store: { ...parts.store, page: () => Promise.reject(error) } }),
    });
    // It continues to serve.
    for (let time = 0; time < 2; time += 1) {
      const answer = await ask(server, WINDOW);
      expect(answer.status).toBe(status);
      expectDocumented(SCREENINGS, 'get', answer);
    }
  });
}

const TOKEN_ANSWERS: [title: string, status: number, change: Record<string, string>][] = [
  ['right credentials', 200, {}],
  ['a missing scope', 400, { scope: '' }],
  ['another grant', 400, { grant_type: 'password' }],
  ['another scope', 400, { scope: 'other' }],
  ['a wrong secret', 401, { client_secret: 'wrong' }],
  ['a long body', 413, { client_secret: 'x'.repeat(70_000) }],
];
for (const [title, status, change] of TOKEN_ANSWERS) {
  test(`the token endpoint answers ${title} with ${status} as documented`, async ({ server }) => {
    const target = server.target();
    const answer = await requestToken(target, { ...goodForm(target.clients.primary), ...change });
    expect(answer.status).toBe(status);
    expectDocumented(TOKEN, 'post', answer);
  });
}

test('the token endpoint answers too many guesses with 429 as documented', async ({ start }) => {
  const server = await start({
    wrapParts: (parts) => ({
      ...parts,
      clients: { authenticate: () => Promise.reject(new TooManyGuesses('deliberately, by a test')) },
    }),
  });
  const target = server.target();
  const answer = await requestToken(target, goodForm(target.clients.primary));
  expect(answer.status).toBe(429);
  expectDocumented(TOKEN, 'post', answer);
});
