/** The reference service on screenings in memory, with exactly known figures: workers, service time, rate limiter. */
import { setTimeout as sleep } from 'node:timers/promises';
import { instant } from '../../engine/data/instant.ts';
import { GENERATED_WINDOW, generateScreenings } from '../../fixtures/dataset/generator.ts';
import { createTokenIssuer } from '../../reference-server/auth.ts';
import { type Handler, listen } from '../../reference-server/http/http.ts';
import { createService } from '../../reference-server/http/service.ts';
import { isTokenPath } from '../../reference-server/non-implementations/tools.ts';
import type { RateLimiter, ScreeningStore } from '../../reference-server/parts.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { createMemoryStore } from '../../reference-server/store/memory.ts';
import { createLimiter, type Limiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { randomSource } from '../estimate/random.ts';
import { WorkQueue } from '../plan/simulate.ts';
import { type ServiceSettings, serviceTimes } from './targets.ts';

export interface SimulatedSettings {
  /** Absent: answers without delay. */
  readonly service?: ServiceSettings;
  /** Per client, or for all clients together. */
  readonly limiter?: LimiterSettings;
  readonly sharedLimiter?: boolean;
  /** Added to every Retry-After, in seconds; negative values make it too short. */
  readonly retryAfterOffsetSeconds?: number;
  /** Additional milliseconds of the last page of a traversal; proportionally fewer before it. */
  readonly deepPageMs?: number;
  /** Default 5,000. */
  readonly screenings?: number;
  /** Default 3600. */
  readonly tokenLifetimeSeconds?: number;
  /** Number of clients, each with its own tenant; default 1. */
  readonly clients?: number;
  /** Pages that would be answered within this interval, counted from the first page, are answered at its end. */
  readonly freeze?: { readonly fromSeconds: number; readonly forSeconds: number };
  /** Wraps the service. */
  readonly fault?: Pick<ServerOptions, 'wrapHandler'>;
}

export async function startSimulatedServer(settings: SimulatedSettings) {
  const { service, tokenLifetimeSeconds = 3600, freeze, fault } = settings;
  const clients = Array.from({ length: settings.clients ?? 1 }, (_, index) => ({
    clientId: `simulated-${index}`,
    clientSecret: `simulated-secret-${index}-c0ffee`,
    tenantId: `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
    ...{ scopes: ['screenings.read'], grantTypes: ['client_credentials'], suspended: false },
  }));
  const counts = { tokens: 0, pages: 0, unauthenticated: 0 };
  const listener = await listen();
  const { origin } = listener;
  const plain = createService({
    ...{ baseUrl: origin, authUrl: origin, issuer: origin, audience: origin, pathPrefix: '' },
    tokenLifetimeSeconds,
    store: storeOf(settings, clients),
    tokens: createTokenIssuer({ issuer: origin, audience: origin }),
    clients: {
      authenticate: async (id, secret) =>
        clients.find(({ clientId, clientSecret }) => clientId === id && clientSecret === secret),
    },
    ...(settings.limiter ? { limiter: limiterOf(settings, settings.limiter) } : {}),
    now: Date.now,
  });
  const served = fault?.wrapHandler?.(plain) ?? plain;
  const queue = service && new WorkQueue(service.workers);
  const draw = service && serviceTimes(service, randomSource(1));
  let firstPageMs: number | undefined;

  const delayed: Handler = async (request) => {
    const nowMs = performance.now();
    const answer = await served(request);
    if (isTokenPath(request)) counts.tokens += 1;
    else if (answer.status === 401) counts.unauthenticated += 1;
    if (isTokenPath(request) || answer.status !== 200) return answer;
    counts.pages += 1;
    firstPageMs ??= nowMs;
    let doneMs = queue?.finishAt(nowMs, draw!()) ?? nowMs;
    const fromMs = firstPageMs + (freeze?.fromSeconds ?? Infinity) * 1000;
    const untilMs = fromMs + (freeze?.forSeconds ?? 0) * 1000;
    if (doneMs >= fromMs && doneMs < untilMs) doneMs = untilMs;
    if (doneMs > nowMs) await sleep(doneMs - performance.now());
    return answer;
  };
  listener.handle(delayed);
  const [primary, secondTenant] = clients.map(({ clientId, clientSecret, tenantId }) => ({
    ...{ clientId, clientSecret, tenantId },
  }));
  return {
    origin,
    port: listener.port,
    counts,
    /** The content of a target file for this server. */
    target: {
      name: 'simulated server',
      baseUrl: origin,
      authUrl: origin,
      clients: { primary: primary!, ...(secondTenant ? { secondTenant } : {}) },
      window: GENERATED_WINDOW,
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

function storeOf(
  { screenings: count = 5000, deepPageMs = 0 }: SimulatedSettings,
  clients: readonly { readonly tenantId: string }[],
): ScreeningStore {
  const store = createMemoryStore(
    new Map(clients.map(({ tenantId }) => [tenantId, generateScreenings({ tenantId, count })])),
  );
  const [first, last] = [instant(GENERATED_WINDOW.from).seconds, instant(GENERATED_WINDOW.to).seconds];
  return {
    ...store,
    async page(query) {
      const part = Number(query.from.seconds - first) / Number(last - first);
      if (query.fromId !== undefined && deepPageMs > 0) await sleep(deepPageMs * part);
      return store.page(query);
    },
  };
}

function limiterOf(
  { sharedLimiter, retryAfterOffsetSeconds = 0 }: SimulatedSettings,
  limiter: LimiterSettings,
): RateLimiter {
  const limiters = new Map<string, Limiter>();
  return {
    admit(clientId) {
      const key = sharedLimiter ? 'all' : clientId;
      if (!limiters.has(key)) limiters.set(key, createLimiter(limiter));
      const waitMs = limiters.get(key)!.ask(performance.now());
      const seconds = Math.ceil(waitMs / 1000 - 1e-9) + retryAfterOffsetSeconds;
      return waitMs > 0 ? { admitted: false, retryAfterSeconds: Math.max(0, seconds) } : { admitted: true };
    },
  };
}
