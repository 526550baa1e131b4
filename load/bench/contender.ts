/**
 * Servers to compare the reference server with, each in its own process: `contender.ts KIND DATABASE_URL TENANT`.
 * Prints its port, and serves /?at=…&id=…&size=… (kind `offset`: &offset=…).
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';

const [kind = '', url, tenant = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 10 });
const AFTER_CURSOR =
  'FROM screening WHERE tenant = $1 AND (at, screening.id) > ($2, $3) ORDER BY at, screening.id LIMIT $4';
const textOf = (rows: readonly [string][]): string =>
  `{"items":[${rows.map(([json]) => json).join(',')}],"links":{}}`;

type Answer = (query: URLSearchParams) => Promise<string>;

async function rowsOf(name: string, text: string, values: unknown[]): Promise<[string][]> {
  return (await pool.query({ name, text, values, rowMode: 'array' })).rows as unknown as [string][];
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  /** The same page without any checks. */
  bare: async (query) =>
    textOf(
      await rowsOf('bare', `SELECT json ${AFTER_CURSOR}`, [
        tenant,
        query.get('at'),
        query.get('id'),
        Number(query.get('size')),
      ]),
    ),
  /** Paging with OFFSET. */
  offset: async (query) =>
    textOf(
      await rowsOf(
        'offset',
        'SELECT json FROM screening WHERE tenant = $1 ORDER BY at, screening.id LIMIT $2 OFFSET $3',
        [tenant, Number(query.get('size')), Number(query.get('offset'))],
      ),
    ),
};

const CONSTANT: Record<string, string> = {};

/** A constant body as long as the first requested page of that size. */
async function constant(query: URLSearchParams): Promise<string> {
  const size = query.get('size') ?? '';
  return (CONSTANT[size] ??= (await ANSWERS['bare']!(query)).replace(/[^\x20-\x7e]/g, '?'));
}

function plain(answer: Answer): Server {
  return createServer((request, response) => {
    void answer(new URLSearchParams(request.url?.slice(2))).then((text) => {
      const body = Buffer.from(text);
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
        .end(body);
    });
  });
}

/** A straightforward implementation: rows are parsed to objects and serialised again. */
function first(): Server {
  const app = express();
  app.get('/', async (request, response) => {
    const { at, id, size } = request.query;
    const { rows } = await pool.query<{ json: object }>(`SELECT id, test_time, json::json ${AFTER_CURSOR}`, [
      tenant,
      at,
      id,
      Number(size),
    ]);
    response.json({ items: rows.map(({ json }) => ({ ...json })), links: {} });
  });
  return createServer(app);
}

const server = kind === 'first' ? first() : plain(kind === 'constant' ? constant : ANSWERS[kind]!);
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.stdout.on('error', () => process.exit());
process.stdin.on('end', () => process.exit()).resume();
