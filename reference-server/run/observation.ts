/** The access log and the metrics of a running server. */
import { pino } from 'pino';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { UUID } from '../../engine/data/dataset.ts';
import { parseInstant } from '../../engine/data/instant.ts';
import { splitTarget, type Observer } from '../http/http.ts';
import type { Observation } from './start.ts';

/** Writes a JSON object per line, of validated values alone: a path or a query may hold a secret by mistake. */
export function accessLog(destination: string | undefined): Observer {
  const log = pino({ base: null }, pino.destination({ dest: destination ?? 2, mkdir: true }));
  return (outcome) => {
    const { requestId, method, path, status, octets, durationMs } = outcome;
    const { endpoint, tenantId, query } = loggable(path);
    const fields = { requestId, method, endpoint, tenantId, query, status, octets };
    log.info({ ...fields, durationMs: Number(durationMs.toFixed(2)) });
  };
}

const isInstant = (value: string): boolean => value.length < 60 && parseInstant(value) !== undefined;

const VALUES: Readonly<Record<string, (value: string) => boolean>> = {
  from: isInstant,
  to: isInstant,
  pageSize: (value) => /^\d{1,4}$/.test(value),
  from_id: (value) => /^-?\d{1,19}$/.test(value),
};

type Endpoint = 'screenings' | 'token' | 'events' | 'other';

function endpointOf(resource: string): Endpoint {
  if (resource.endsWith('/screenings')) return 'screenings';
  if (resource.endsWith('/oauth/token')) return 'token';
  return resource.startsWith('/events/') ? 'events' : 'other';
}

function loggable(path: string) {
  const [resource, query] = splitTarget(path);
  const endpoint = endpointOf(resource);
  const tenant = /\/(?:v1\/tenants|events)\/([^/]+)/.exec(resource)?.[1] ?? '';
  const shown = [...new URLSearchParams(query)].filter(([name, value]) => VALUES[name]?.(value));
  return {
    endpoint,
    tenantId: UUID.test(tenant) ? tenant : undefined,
    query: endpoint === 'screenings' ? Object.fromEntries(shown) : undefined,
  };
}

/** `pool` is called for every scrape. */
export function createMetrics(pool: () => Readonly<Record<string, number>>): Observation {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests answered, by endpoint, method and status.',
    labelNames: ['endpoint', 'method', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'From the first byte of a request to the last of its answer.',
    labelNames: ['endpoint'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  new Gauge({
    name: 'database_connections',
    help: 'Connections of the pool: total, idle, and requests that wait for one.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(pool())) this.set({ state }, count);
    },
  });
  return {
    observer({ path, method, status, durationMs }) {
      const endpoint = endpointOf(splitTarget(path)[0]);
      requests.inc({ endpoint, method, status });
      durations.observe({ endpoint }, durationMs / 1000);
    },
    metrics: () => registry.metrics(),
  };
}
