/** Checks real answers against openapi.yaml: every status is documented, every header and body matches its schema. */
import { readFile } from 'node:fs/promises';
import { expect } from '@playwright/test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { certifyServer } from '../../certify/proof/faults.ts';
import { StoreUnavailable, TooManyGuesses } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { goodForm, pagesOf, type Received, requestToken, send, test } from '../testing.ts';
import { selectIds } from '../../engine/requirements.ts';

interface Response {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: object }>>;
  readonly content: Readonly<Record<string, { readonly schema: object }>>;
}
type Operations = Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>;
type Tree = { readonly [name: string]: Tree } & { readonly $ref?: string };

const document = parse(await readFile(new URL('openapi.yaml', import.meta.url), 'utf8')) as Tree;
/** The value with every reference replaced by what it names. */
const inlined = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, part: Tree | null) => {
    const steps = part?.$ref?.slice('#/'.length).split('/');
    return steps ? inlined(steps.reduce((at, step) => at[step]!, document)) : part;
  });
const PATHS = inlined(document['paths']) as Readonly<Record<string, Operations>>;
const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { int64: true } });

const TOKEN = '/oauth/token';
const SCREENINGS = '/v1/tenants/{tenantId}/screenings';

/** What the document does not say of an answer. Each path has one operation. */
function undocumented(path: string, { status, headers, json }: Omit<Received, 'text'>): string[] {
  const documented = Object.values(PATHS[path]!)[0]!.responses[status];
  if (!documented) return [`${path} documents no ${status}`];
  const type = headers.get('content-type') ?? 'body without a type';
  const media = documented.content[type];
  if (!media) return [`${status} of ${path} documents no ${type}`];
  const parts = Object.entries(documented.headers ?? {}).flatMap(([dataVar, { required, schema }]) => {
    const value = headers.get(dataVar);
    return value === null && !required ? [] : [{ dataVar, schema, value }];
  });
  return [...parts, { dataVar: 'body', schema: media.schema, value: json }].flatMap(
    ({ dataVar, schema, value }) =>
      ajv.validate(schema, value) ? [] : `${status} of ${path}: ${ajv.errorsText(ajv.errors, { dataVar })}`,
  );
}

test('documents every answer to a certificate', async ({ small }) => {
  const seen = { [TOKEN]: new Set<number>(), [SCREENINGS]: new Set<number>() };
  const missing = new Set<string>();
  await certifyServer(small, {}, 'full', {
    ...{ runs: 1, only: selectIds(['4.1', '5-missing', '5-forbidden', '7']) },
    onExchange: ({ request: { method, url }, status, headers, text }) => {
      const isOf = (path: string): boolean => RegExp(`\\d${path.replace(/{.*}/, '[^/?]+')}(\\?|$)`).test(url);
      const path = ([TOKEN, SCREENINGS] as const).find(isOf);
      if (path === undefined || method === 'HEAD') return;
      seen[path].add(status);
      const answer = { status, headers: new Headers(headers as [string, string][]), json: JSON.parse(text) };
      for (const what of undocumented(path, answer)) missing.add(what);
    },
  });
  expect([...missing]).toEqual([]);
  expect([...seen[TOKEN]]).toEqual(expect.arrayContaining([200, 400, 401, 405]));
  expect([...seen[SCREENINGS]]).toEqual(expect.arrayContaining([200, 400, 401, 403, 404, 405]));
});

const LONG = 'x'.repeat(70_000);
const REFUSED: [status: number, path: string, init: RequestInit, query?: string][] = [
  [413, SCREENINGS, { method: 'POST', body: LONG }],
  [414, SCREENINGS, {}, `?x=${LONG.slice(0, 8_000)}`],
  [431, SCREENINGS, { headers: { x: LONG.slice(0, 40_000) } }],
  [413, TOKEN, { method: 'POST', body: LONG }],
];
for (const [status, path, init, query = ''] of REFUSED)
  test(`documents the ${status} of ${path}`, async ({ server }) => {
    const answer = await send(`${server.baseUrl}${path}${query}`, init);
    expect(answer.status).toBe(status);
    expect(undocumented(path, answer)).toEqual([]);
  });

const failing = (error: Error): ServerOptions => ({
  wrapParts: (parts) => ({ ...parts, store: { ...parts.store, page: () => Promise.reject(error) } }),
});
const guessed = { authenticate: () => Promise.reject(new TooManyGuesses('deliberately, by a test')) };
const FAILURES: [status: number, path: string, options: ServerOptions][] = [
  [429, TOKEN, { wrapParts: (parts) => ({ ...parts, clients: guessed }) }],
  [429, SCREENINGS, { rateLimit: { limit: 1, windowMs: 3_600_000, algorithm: 'token-bucket' } }],
  [500, SCREENINGS, failing(new Error('deliberately, by a test'))],
  [503, SCREENINGS, failing(new StoreUnavailable('deliberately, by a test'))],
];
for (const [status, path, options] of FAILURES)
  test(`documents the ${status} of ${path} of a server that fails or limits`, async ({ start }) => {
    const target = (await start(options)).target();
    const pages = path === TOKEN ? undefined : await pagesOf(target);
    const ask = (): Promise<Received> =>
      pages?.('?from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z') ??
      requestToken(target, goodForm(target.clients.primary));
    // It continues to serve.
    const answers = [await ask(), await ask()];
    expect(answers.at(-1)!.status).toBe(status);
    expect(answers.flatMap((answer) => undocumented(path, answer))).toEqual([]);
  });
