/**
 * Servers to compare the reference server with, in one process of their own: `contender.ts DATABASE_URL TENANT`.
 * Prints its port, and serves /KIND?at=…&id=…&size=… (kind `offset`: &offset=…).
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';

const [url, tenant = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 10 });
const AFTER_CURSOR =
  'FROM screening WHERE tenant = $1 AND (at, screening.id) > ($2, $3) ORDER BY at, screening.id LIMIT $4';

/** Selects the bodies of screenings; the values are query parameters by name. */
async function pageOf(name: string, text: string, query: URLSearchParams, values: string[]): Promise<string> {
  const parameters = [tenant, ...values.map((value) => query.get(value))];
  const { rows } = await pool.query({ name, text, values: parameters, rowMode: 'array' });
  return `{"items":[${rows.map(([json]) => String(json)).join(',')}],"links":{}}`;
}

const bare = (query: URLSearchParams): Promise<string> =>
  pageOf('bare', `SELECT json ${AFTER_CURSOR}`, query, ['at', 'id', 'size']);

const OFFSET = 'SELECT json FROM screening WHERE tenant = $1 ORDER BY at, screening.id LIMIT $2 OFFSET $3';
const offset = (query: URLSearchParams): Promise<string> =>
  pageOf('offset', OFFSET, query, ['size', 'offset']);

const constants: Record<string, string> = {};
/** A constant body as long as the first requested page of that size. */
const constant = async (query: URLSearchParams): Promise<string> =>
  (constants[query.get('size')!] ??= (await bare(query)).replace(/[^\x20-\x7e]/g, '?'));

/** A straightforward implementation: rows are parsed to objects and serialised again. */
const first = express().get('/first', async (request, response) => {
  const { at, id, size } = request.query;
  const text = `SELECT id, test_time, json::json ${AFTER_CURSOR}`;
  const { rows } = await pool.query<{ json: object }>(text, [tenant, at, id, Number(size)]);
  response.json({ items: rows.map(({ json }) => ({ ...json })), links: {} });
});

const server = createServer((request, response) => {
  const [kind = '', query] = request.url!.slice(1).split('?');
  if (kind === 'first') return void first(request, response);
  const answer = { bare, offset, constant }[kind]!;
  void answer(new URLSearchParams(query)).then((text) => {
    const body = Buffer.from(text);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.stdout.on('error', () => process.exit());
process.stdin.on('end', () => process.exit()).resume();
