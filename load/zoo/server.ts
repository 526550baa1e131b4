/** The reference service on screenings in memory, whose pages are answered as a simulated server with known figures does. */
import { setTimeout as sleep } from 'node:timers/promises';
import { GENERATED_WINDOW, generateScreenings } from '../../fixtures/dataset/generator.ts';
import { errorAnswer, type Handler, listen } from '../../reference-server/http/http.ts';
import { createService } from '../../reference-server/http/service.ts';
import { isTokenRequest } from '../../reference-server/run/alter.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { memoryParts } from '../../reference-server/store/memory.ts';
import { type Behaviour, server, type VirtualTarget } from './targets.ts';

export interface SimulatedSettings {
  /** What the server does with the pages of a tenant's client. Default: it answers without delay. */
  readonly behaviour?: (tenantId: string) => Behaviour;
  readonly screenings?: number;
  readonly tokenLifetimeSeconds?: number;
  readonly clients?: number;
  readonly fault?: Pick<ServerOptions, 'wrapHandler'>;
}

export async function startSimulatedServer(settings: SimulatedSettings) {
  const { behaviour, screenings = 5000, tokenLifetimeSeconds = 3600, fault } = settings;
  const clients = Array.from({ length: settings.clients ?? 1 }, (_, index) => ({
    clientId: `simulated-${index}`,
    clientSecret: `simulated-secret-${index}-c0ffee`,
    tenantId: `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
  }));
  const stored = clients.map(
    ({ tenantId }) => [tenantId, generateScreenings({ tenantId, count: screenings })] as const,
  );
  const counts = { tokens: 0, pages: 0, unauthenticated: 0 };
  const listener = await listen();
  const { origin } = listener;
  const own = { baseUrl: origin, authUrl: origin, tokenLifetimeSeconds };
  const plain = createService(memoryParts(new Map(stored), clients, own));
  const served = fault?.wrapHandler?.(plain) ?? plain;
  const targets = new Map<string, VirtualTarget>();

  const behaving: Handler = async (request) => {
    const answer = await served(request);
    if (isTokenRequest(request)) counts.tokens += 1;
    else if (answer.status === 401) counts.unauthenticated += 1;
    if (isTokenRequest(request) || answer.status !== 200) return answer;
    const atMs = performance.now();
    if (behaviour) {
      const client = /tenants\/([^/]+)/.exec(request.path)![1]!;
      if (!targets.has(client)) targets.set(client, server(behaviour(client), 1));
      const { status, latencyMs, retryAfterSeconds } = targets.get(client)!(atMs);
      if (status === 429)
        return errorAnswer(429, 'rate_limited', 'rejected', [['retry-after', String(retryAfterSeconds)]]);
      await sleep(Math.max(0, atMs + latencyMs - performance.now()));
    }
    counts.pages += 1;
    return answer;
  };
  listener.handle(behaving);
  const [primary, secondTenant] = clients;
  return {
    origin,
    port: listener.port,
    counts,
    target: {
      ...{ name: 'simulated server', baseUrl: origin, authUrl: origin },
      clients: { primary: primary!, ...(secondTenant ? { secondTenant } : {}) },
      window: GENERATED_WINDOW,
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
