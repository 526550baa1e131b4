/**
 * A target over HTTP with exactly known figures: workers, service time, rate limiter, paging defect. It implements the
 * token endpoint and the screenings endpoint only as far as load needs them.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { WorkQueue } from '../plan/simulate.ts';
import { type ServiceSettings, serviceTimes } from './targets.ts';
import { createLimiter, type Limiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { pageCost, type PagingDefect } from './depths.ts';
import { startChild } from '../run/reference.ts';

export interface SimulatedSettings {
  /** Absent: answers without delay. */
  readonly service?: ServiceSettings;
  /** Per client, or for all clients together. */
  readonly limiter?: LimiterSettings;
  readonly sharedLimiter?: boolean;
  /** Pages in flight; the next one is answered 429. */
  readonly concurrencyLimit?: number;
  readonly paging?: PagingDefect;
  /** Factor on the cost of the paging defect; default 1. */
  readonly pagingCost?: number;
  readonly screenings?: number;
  /** Default 3600. */
  readonly tokenLifetimeSeconds?: number;
  /** Number of clients, each with its own tenant; default 1. */
  readonly clients?: number;
  /** Added to every Retry-After, in seconds; negative values make it too short. */
  readonly retryAfterOffsetSeconds?: number;
  /** Pages that would be answered within this interval, counted from the first page, are answered at its end. */
  readonly freeze?: { readonly fromSeconds: number; readonly forSeconds: number };
  /** Every n-th page has two items in the wrong order. */
  readonly disorderEvery?: number;
}

interface SimulatedClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
}

/** Numbers of requests, for tests. */
interface SimulatedCounts {
  tokens: number;
  pages: number;
  unauthenticated: number;
  limited: number;
}

const simulatedClients = (count: number): SimulatedClient[] =>
  Array.from({ length: count }, (_, index) => ({
    clientId: `simulated-${index}`,
    clientSecret: `simulated-secret-${index}-c0ffee`,
    tenantId: `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
  }));

function createSimulatedServer(settings: SimulatedSettings): Server {
  const clients = simulatedClients(settings.clients ?? 1);
  const screenings = createScreenings(settings.screenings ?? 20_000);
  const cost = pageCost(settings.paging, settings.pagingCost);
  const queue = settings.service && new WorkQueue(settings.service.workers);
  const draw = settings.service && serviceTimes(settings.service, randomSource(1));
  const limiters = new Map<string, Limiter>();
  const lifetime = settings.tokenLifetimeSeconds ?? 3600;
  const tokens = new Map<string, { client: SimulatedClient; expiresAtMs: number }>();
  let firstPageMs: number | undefined;
  let inFlight = 0;
  const counts: SimulatedCounts = { tokens: 0, pages: 0, unauthenticated: 0, limited: 0 };

  return createServer((request, response) => {
    // First, because it is the arrival time.
    const nowMs = performance.now();
    const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`);
    if (url.pathname === '/oauth/token') return void mint(request, response);
    if (url.pathname === '/counts') return send(response, 200, counts);
    page(request, response, url, nowMs);
  });

  async function mint(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const piece of request) body += piece;
    const form = new URLSearchParams(body);
    const client = clients.find(({ clientId }) => clientId === form.get('client_id'));
    if (!client || client.clientSecret !== form.get('client_secret')) {
      return send(response, 401, { error: 'invalid_client', error_description: 'unknown' });
    }
    counts.tokens += 1;
    const iat = Math.floor(Date.now() / 1000);
    const claims = {
      sub: client.clientId,
      tenant_id: client.tenantId,
      iat,
      exp: iat + lifetime,
      n: counts.tokens,
    };
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${encode({ alg: 'none' })}.${encode(claims)}.simulated`;
    tokens.set(token, { client, expiresAtMs: Date.now() + lifetime * 1000 });
    send(response, 200, {
      access_token: token,
      token_type: 'Bearer',
      expires_in: lifetime,
      scope: 'screenings.read',
    });
  }

  function page(request: IncomingMessage, response: ServerResponse, url: URL, nowMs: number): void {
    const token = tokens.get(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '');
    if (!token || token.expiresAtMs <= Date.now()) {
      counts.unauthenticated += 1;
      return send(response, 401, { code: 'unauthenticated' });
    }
    const { client } = token;
    const path = /^\/v1\/tenants\/([^/]+)\/screenings$/.exec(url.pathname);
    if (!path) return send(response, 404, { code: 'not_found' });
    if (path[1] !== client.tenantId) return send(response, 403, { code: 'forbidden' });

    const { concurrencyLimit = Infinity } = settings;
    const waitMs = inFlight >= concurrencyLimit ? 1000 : (limiterOf(client.clientId)?.ask(nowMs) ?? 0);
    if (waitMs > 0) {
      counts.limited += 1;
      const seconds = Math.max(0, Math.ceil(waitMs / 1000 - 1e-9) + (settings.retryAfterOffsetSeconds ?? 0));
      return send(response, 429, { code: 'rate_limited' }, { 'retry-after': String(seconds) });
    }

    counts.pages += 1;
    const { body, link, extraMs } = answer(url, client);
    const serviceMs = (draw?.() ?? 0) + extraMs;
    firstPageMs ??= nowMs;
    const doneMs = afterFreeze(queue ? queue.finishAt(nowMs, serviceMs) : nowMs + serviceMs);
    inFlight += 1;
    const reply = (): void => {
      inFlight -= 1;
      response.writeHead(200, {
        'content-type': 'application/json',
        ...(link ? { link: `<${link}>; rel="next"` } : {}),
      });
      response.end(body);
    };
    const leftMs = doneMs - performance.now();
    if (leftMs < 0.3) reply();
    else setTimeout(reply, leftMs);
  }

  function afterFreeze(doneMs: number): number {
    if (!settings.freeze || firstPageMs === undefined) return doneMs;
    const fromMs = firstPageMs + settings.freeze.fromSeconds * 1000;
    const untilMs = fromMs + settings.freeze.forSeconds * 1000;
    return doneMs >= fromMs && doneMs < untilMs ? untilMs : doneMs;
  }

  function limiterOf(clientId: string): Limiter | undefined {
    if (!settings.limiter) return undefined;
    const key = settings.sharedLimiter ? 'all' : clientId;
    let limiter = limiters.get(key);
    if (!limiter) limiters.set(key, (limiter = createLimiter(settings.limiter)));
    return limiter;
  }

  function answer(url: URL, client: SimulatedClient): { body: string; link?: string; extraMs: number } {
    const query = url.searchParams;
    const fromMicros = microsOf(query.get('from') ?? '');
    const end = screenings.indexOf(microsOf(query.get('to') ?? ''));
    const pageSize = Number(query.get('pageSize') ?? 100);
    const fromId = query.get('from_id');
    const start = screenings.indexOf(fromMicros, fromId === null ? undefined : Number(fromId));
    const skipped = Number(query.get('offset') ?? 0);
    const indexes = Array.from({ length: Math.max(0, Math.min(pageSize, end - start)) }, (_, i) => start + i);
    const last = indexes.at(-1);
    const more = last !== undefined && last + 1 < end;
    const extraMs = cost({
      rowsBefore: start,
      rowsSkipped: skipped,
      rowsLeft: Math.max(0, end - start),
      resumed: fromId !== null,
    });
    if (settings.disorderEvery && counts.pages % settings.disorderEvery === 0) indexes.reverse();
    const items = indexes.map((index) => screenings.item(index, client.tenantId)).join(',');
    if (!more) return { body: `{"items":[${items}],"links":{}}`, extraMs };
    const lastTime = timeText(screenings.microsAt(last));
    const cursor = new URLSearchParams({
      // The defect: a Date truncates to milliseconds, so that items of the same millisecond are repeated.
      from: settings.paging === 'millisecond-cursor' ? new Date(lastTime).toISOString() : lastTime,
      to: query.get('to') ?? '',
      pageSize: String(pageSize),
      from_id: String(screenings.id(last)),
      ...(settings.paging === 'offset' ? { offset: String(skipped + indexes.length) } : {}),
    });
    const link = `${url.origin}${url.pathname}?${cursor}`;
    return { body: `{"items":[${items}],"links":{"next":${JSON.stringify(link)}}}`, link, extraMs };
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
  response.end(JSON.stringify(body));
}

const BASE_SECONDS = Date.UTC(2026, 0, 1) / 1000;

/** Microseconds between ties; not a multiple of 1000, so that truncating a cursor to milliseconds has an effect. */
const STEP_MICROS = 350_370;
/** Screenings with the same testTime. */
const TIE_SIZE = 2;

function createScreenings(count: number) {
  /** The testTime at an index, in microseconds since BASE_SECONDS. */
  const microsAt = (index: number): number => Math.floor(index / TIE_SIZE) * STEP_MICROS;
  const id = (index: number): number => 1000 + index;
  return {
    /** The window that contains all screenings. */
    window: { from: timeText(0), to: timeText(microsAt(count - 1) + STEP_MICROS) },
    microsAt,
    id,
    /** The index of the first screening at or after the instant; with `afterId`, after (instant, afterId). */
    indexOf(micros: number, afterId?: number): number {
      const exact = micros / STEP_MICROS;
      const first = Math.ceil(exact) * TIE_SIZE;
      if (afterId === undefined || Math.ceil(exact) !== exact) return clamp(first, count);
      let index = first;
      while (index < first + TIE_SIZE && id(index) <= afterId) index += 1;
      return clamp(index, count);
    },
    item: (index: number, tenantId: string): string =>
      `{"id":${id(index)},"tenantId":"${tenantId}","testTime":"${timeText(microsAt(index))}","device":"d${index % 7}","outcome":"completed"}`,
  };
}

const clamp = (index: number, count: number): number => Math.max(0, Math.min(count, index));

function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6).padStart(6, '0');
  return `${new Date((BASE_SECONDS + seconds) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** Parses an RFC 3339 text to microseconds since BASE_SECONDS; NaN for anything else. */
function microsOf(text: string): number {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!match) return NaN;
  const seconds = Date.parse(`${match[1]}${match[3]}`) / 1000 - BASE_SECONDS;
  return seconds * 1e6 + Number((match[2] ?? '').padEnd(6, '0').slice(0, 6));
}

export interface SimulatedServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly pid: number;
  /** Returns the content of a target file for this server. */
  target(): Record<string, unknown>;
  counts(): Promise<SimulatedCounts>;
}

export async function startSimulatedServer(settings: SimulatedSettings): Promise<SimulatedServer> {
  const child = await startChild(new URL(import.meta.url), [JSON.stringify(settings)]);
  const { port } = JSON.parse(child.line) as { port: number };
  const baseUrl = `http://127.0.0.1:${port}`;
  const [primary, secondTenant] = simulatedClients(settings.clients ?? 1);
  return {
    baseUrl,
    pid: child.pid,
    target: () => ({
      name: 'simulated server',
      baseUrl,
      authUrl: baseUrl,
      clients: { primary, ...(secondTenant ? { secondTenant } : {}) },
      window: createScreenings(settings.screenings ?? 20_000).window,
    }),
    counts: async () => (await (await fetch(`${baseUrl}/counts`)).json()) as SimulatedCounts,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** As a process: takes the settings as JSON in its argument, and prints `{"port":N}` when it listens. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const own = createSimulatedServer(JSON.parse(process.argv[2] ?? '{}') as SimulatedSettings);
  own.keepAliveTimeout = 60_000;
  own.listen(0, '127.0.0.1', 4096, () => {
    console.log(JSON.stringify({ port: (own.address() as AddressInfo).port }));
  });
  // Standard input closes when the parent ends.
  process.stdin.on('end', () => process.exit(0)).resume();
}
