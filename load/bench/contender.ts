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

/** Selects the bodies of screenings; the values are query parameters by name. */
async function pageOf(name: string, text: string, query: URLSearchParams, values: string[]): Promise<string> {
  const parameters = [tenant, ...values.map((value) => query.get(value))];
  const { rows } = await pool.query({ name, text, values: parameters, rowMode: 'array' });
  return `{"items":[${rows.map(([json]) => String(json)).join(',')}],"links":{}}`;
}

const constants: Record<string, string> = {};

const ANSWERS: Readonly<Record<string, (query: URLSearchParams) => Promise<string>>> = {
  /** The same page without any checks. */
  bare: (query) => pageOf('bare', `SELECT json ${AFTER_CURSOR}`, query, ['at', 'id', 'size']),
  offset: (query) =>
    pageOf(
      'offset',
      'SELECT json FROM screening WHERE tenant = $1 ORDER BY at, screening.id LIMIT $2 OFFSET $3',
      query,
      ['size', 'offset'],
    ),
  /** A constant body as long as the first requested page of that size. */
  constant: async (query) =>
    (constants[query.get('size')!] ??= (await ANSWERS['bare']!(query)).replace(/[^\x20-\x7e]/g, '?')),
};

function plain(): Server {
  return createServer((request, response) => {
    void ANSWERS[kind]!(new URLSearchParams(request.url?.slice(2))).then((text) => {
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
    const text = `SELECT id, test_time, json::json ${AFTER_CURSOR}`;
    const { rows } = await pool.query<{ json: object }>(text, [tenant, at, id, Number(size)]);
    response.json({ items: rows.map(({ json }) => ({ ...json })), links: {} });
  });
  return createServer(app);
}

const server = kind === 'first' ? first() : plain();
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.stdout.on('error', () => process.exit());
process.stdin.on('end', () => process.exit()).resume();
