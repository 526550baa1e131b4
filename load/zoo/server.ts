/**
 * A target over HTTP with exactly known figures: workers, service time, rate limiter, paging defect. It implements the
 * token endpoint and the screenings endpoint only as far as load needs them.
 */
import { isTokenPath, json, token } from '../../reference-server/non-implementations/tools.ts';
import { serve, type ServiceAnswer, type ServiceRequest } from '../../reference-server/http/http.ts';
import { createLimiter, type Limiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { WorkQueue } from '../plan/simulate.ts';
import { pageCost, type PagingDefect } from './depths.ts';
import { type ServiceSettings, serviceTimes } from './targets.ts';

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
  /** Default 20,000. */
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

export async function startSimulatedServer(settings: SimulatedSettings) {
  const { service, screenings: count = 20_000, tokenLifetimeSeconds: lifetime = 3600, freeze } = settings;
  const { concurrencyLimit = Infinity, retryAfterOffsetSeconds = 0, disorderEvery = Infinity } = settings;
  const clients = Array.from({ length: settings.clients ?? 1 }, (_, index) => ({
    clientId: `simulated-${index}`,
    clientSecret: `simulated-secret-${index}-c0ffee`,
    tenantId: `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
  }));
  const counts = { tokens: 0, pages: 0, unauthenticated: 0, limited: 0 };
  const issued = new Map<string, { tenantId: string; expiresAtMs: number }>();
  const cost = pageCost(settings.paging, settings.pagingCost);
  const queue = service && new WorkQueue(service.workers);
  const draw = service && serviceTimes(service, randomSource(1));
  const limiters = new Map<string, Limiter>();
  let firstPageMs: number | undefined;
  let inFlight = 0;

  function mint({ body }: ServiceRequest): ServiceAnswer {
    const form = new URLSearchParams(body.toString());
    const client = clients.find(({ clientId }) => clientId === form.get('client_id'));
    if (client?.clientSecret !== form.get('client_secret')) return json(401, { error: 'invalid_client' });
    counts.tokens += 1;
    const { clientId: sub, tenantId: tenant_id } = client!;
    const access_token = token({ sub, tenant_id, n: counts.tokens });
    issued.set(access_token, { tenantId: tenant_id, expiresAtMs: Date.now() + lifetime * 1000 });
    return json(200, { access_token, token_type: 'Bearer', expires_in: lifetime, scope: 'screenings.read' });
  }

  async function page({ path, headers }: ServiceRequest): Promise<ServiceAnswer> {
    // First, because it is the arrival time.
    const nowMs = performance.now();
    const url = new URL(path, `http://${headers['host']}`);
    const { tenantId, expiresAtMs = 0 } = issued.get(headers['authorization']?.slice(7) ?? '') ?? {};
    if (tenantId === undefined || expiresAtMs <= Date.now()) {
      counts.unauthenticated += 1;
      return json(401, { code: 'unauthenticated' });
    }
    if (url.pathname !== `/v1/tenants/${tenantId}/screenings`) return json(403, { code: 'forbidden' });
    const waitMs = inFlight >= concurrencyLimit ? 1000 : (limiterOf(tenantId)?.ask(nowMs) ?? 0);
    if (waitMs > 0) {
      counts.limited += 1;
      const seconds = Math.max(0, Math.ceil(waitMs / 1000 - 1e-9) + retryAfterOffsetSeconds);
      return withHeader(json(429, { code: 'rate_limited' }), 'retry-after', String(seconds));
    }
    counts.pages += 1;
    firstPageMs ??= nowMs;
    const { body, link, extraMs } = answer(url, tenantId);
    const serviceMs = (draw?.() ?? 0) + extraMs;
    const doneMs = afterFreeze(queue ? queue.finishAt(nowMs, serviceMs) : nowMs + serviceMs, firstPageMs);
    inFlight += 1;
    const leftMs = doneMs - performance.now();
    if (leftMs >= 0.3) await new Promise((done) => setTimeout(done, leftMs));
    inFlight -= 1;
    return link ? withHeader(json(200, body), 'link', `<${link}>; rel="next"`) : json(200, body);
  }

  function afterFreeze(doneMs: number, startMs: number): number {
    const fromMs = startMs + (freeze?.fromSeconds ?? Infinity) * 1000;
    const untilMs = fromMs + (freeze?.forSeconds ?? 0) * 1000;
    return doneMs >= fromMs && doneMs < untilMs ? untilMs : doneMs;
  }

  function limiterOf(tenantId: string): Limiter | undefined {
    if (!settings.limiter) return undefined;
    const key = settings.sharedLimiter ? 'all' : tenantId;
    if (!limiters.has(key)) limiters.set(key, createLimiter(settings.limiter));
    return limiters.get(key);
  }

  function answer(url: URL, tenantId: string): { body: string; link?: string; extraMs: number } {
    const query = url.searchParams;
    const to = query.get('to') ?? '';
    const end = indexOf(count, to);
    const pageSize = Number(query.get('pageSize') ?? 100);
    const fromId = query.get('from_id');
    const start = indexOf(count, query.get('from') ?? '', fromId === null ? undefined : Number(fromId));
    const skipped = Number(query.get('offset') ?? 0);
    const rowsLeft = Math.max(0, end - start);
    const indexes = Array.from({ length: Math.min(pageSize, rowsLeft) }, (_, i) => start + i);
    const last = indexes.at(-1);
    const extraMs = cost({
      rowsBefore: start,
      rowsSkipped: skipped,
      rowsLeft,
      resumed: fromId !== null,
    });
    if (counts.pages % disorderEvery === 0) indexes.reverse();
    const items = indexes.map((index) => itemOf(index, tenantId)).join(',');
    if (last === undefined || last + 1 >= end) return { body: `{"items":[${items}],"links":{}}`, extraMs };
    const time = timeText(microsAt(last));
    const cursor = new URLSearchParams({
      // The defect: a Date truncates to milliseconds, so that items of the same millisecond are repeated.
      from: settings.paging === 'millisecond-cursor' ? new Date(time).toISOString() : time,
      to,
      pageSize: String(pageSize),
      from_id: String(idOf(last)),
      ...(settings.paging === 'offset' ? { offset: String(skipped + indexes.length) } : {}),
    });
    const link = `${url.origin}${url.pathname}?${cursor}`;
    return { body: `{"items":[${items}],"links":{"next":${JSON.stringify(link)}}}`, link, extraMs };
  }

  const server = await serve(async (request) => (isTokenPath(request) ? mint(request) : page(request)));
  const { origin } = server;
  const [primary, secondTenant] = clients;
  return {
    origin,
    port: server.port,
    counts,
    /** The content of a target file for this server. */
    target: {
      name: 'simulated server',
      baseUrl: origin,
      authUrl: origin,
      clients: { primary: primary!, ...(secondTenant ? { secondTenant } : {}) },
      window: { from: timeText(0), to: timeText(microsAt(count - 1) + STEP_MICROS) },
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const withHeader = (answer: ServiceAnswer, name: string, value: string): ServiceAnswer => ({
  ...answer,
  headers: [...answer.headers, ['cache-control', 'no-store'], [name, value]],
});

const BASE_SECONDS = Date.UTC(2026, 0, 1) / 1000;
/** Microseconds between ties; not a multiple of 1000, so that truncating a cursor to milliseconds has an effect. */
const STEP_MICROS = 350_370;
/** Screenings with the same testTime. */
const TIE_SIZE = 2;

/** The testTime at an index, in microseconds since BASE_SECONDS. */
const microsAt = (index: number): number => Math.floor(index / TIE_SIZE) * STEP_MICROS;
const idOf = (index: number): number => 1000 + index;
const itemOf = (index: number, tenantId: string): string =>
  `{"id":${idOf(index)},"tenantId":"${tenantId}","testTime":"${timeText(microsAt(index))}","device":"d${index % 7}","outcome":"completed"}`;

/** The index of the first of `count` screenings at or after the instant; with `afterId`, after (instant, afterId). */
function indexOf(count: number, time: string, afterId = -1): number {
  let index = Math.ceil(microsOf(time) / STEP_MICROS) * TIE_SIZE;
  while (microsAt(index) === microsOf(time) && idOf(index) <= afterId) index += 1;
  return Math.max(0, Math.min(count, index));
}

function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6).padStart(6, '0');
  return `${new Date((BASE_SECONDS + seconds) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** Parses an RFC 3339 text to microseconds since BASE_SECONDS; NaN for anything else. */
function microsOf(text: string): number {
  const [, second, fraction = '', zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  const seconds = Date.parse(`${second}${zone}`) / 1000 - BASE_SECONDS;
  return seconds * 1e6 + Number(fraction.padEnd(6, '0').slice(0, 6));
}
