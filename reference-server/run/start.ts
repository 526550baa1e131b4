/** Starts reference servers on an open, loaded database. */
import { join } from 'node:path';
import { parseScreening, readScreenings, type Screening } from '../../engine/data/dataset.ts';
import type { Connections } from '../store/connections.ts';
import type { Database } from '../store/database.ts';
import { CERTIFICATE_FILE, KEY, SELF_SIGNED } from '../http/certificates.ts';
import { filesSink, startDelivery, webhookSink, type Delivery, type Sink } from '../events.ts';
import { listen, servingOnly, type Handler, type Listener, type Observer } from '../http/http.ts';
import type { InProcess } from '../http/in-process.ts';
import type { Outage, ScreeningStore, ServiceParts } from '../parts.ts';
import { openOperations } from './operations.ts';
import type { Provisioned } from './provisioning.ts';
import { createRateLimiter, type RateLimit } from '../http/rate-limit.ts';
import { createService, withSidePaths } from '../http/service.ts';
import { createScreeningStore, forgetTenant, storeScreenings } from '../store/store.ts';
import { describeTarget, type ReferenceTarget } from './target.ts';
import { createTokenIssuer } from '../auth.ts';

export interface ServerOptions {
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** A separate port for the token endpoint. */
  readonly authPort?: number;
  /** Serves the token endpoint at a separate origin, on any free port. */
  readonly separateOrigins?: boolean;
  /** Prefix of the paths of the REST API and the token endpoint, such as `/api`. */
  readonly pathPrefix?: string;
  /** Serves TLS with HTTP/2 and HTTP/1.1, with a self-signed certificate for localhost. */
  readonly offersHttp2?: boolean;
  readonly rateLimit?: RateLimit;
  /** Default 3600 (section 8). */
  readonly tokenLifetimeSeconds?: number;
  readonly signingKeyPem?: string;
  /** Injected clock: milliseconds since the epoch. Default Date.now. */
  readonly now?: () => number;
  /** NDJSON file to which primary's events are appended; emptied first, unless an earlier process delivered to it. */
  readonly events?: string;
  /** Directory for every tenant's events: TENANT.ndjson. */
  readonly eventsDir?: string;
  /** URL to which every tenant's events are posted. */
  readonly webhook?: string;
  /** The server's public URL behind a proxy; a path that the proxy keeps is the pathPrefix too. */
  readonly publicUrl?: string;
  /** The same for the token endpoint. Default: publicUrl, unless the token endpoint has a separate origin. */
  readonly publicAuthUrl?: string;
  /** Adds commands to the target file that begin and end an outage of the database. */
  readonly faultCommands?: boolean;
  /** Observes every request; `counts` returns the connections to the database. */
  readonly observe?: (counts: () => Connections['counts']) => Observation;
  /** Listens in this process instead of on ports. */
  readonly inProcess?: InProcess;
  /** Source of the pages. Default: the database. */
  readonly store?: ScreeningStore;
  /** Replaces parts of the service, for faults inside it. */
  readonly wrapParts?: (parts: ServiceParts) => ServiceParts;
  /** Wraps the whole service, for faults in requests and answers. */
  readonly wrapHandler?: (handler: Handler) => Handler;
  readonly wrapOutage?: (outage: Outage) => Outage;
}

export interface Observation {
  readonly observer: Observer;
  /** In the Prometheus text format, served at /metrics. */
  readonly metrics?: () => Promise<string>;
}

export interface ReferenceServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly authUrl: string;
  /** The origins it listens on; behind a proxy they differ from baseUrl's. */
  readonly listeningAt: readonly string[];
  target(): ReferenceTarget;
  /** Stores screenings, or dataset lines, while the server runs, and publishes their events. */
  ingest(screenings: Iterable<Screening> | Iterable<string>): Promise<void>;
  /** Deletes all screenings of a tenant, and keeps their events. */
  clear(tenantId: string): Promise<void>;
  interruptDatabase(): Promise<void>;
  /** Waits up to graceMs for requests in flight. Default 0. */
  stop(graceMs?: number): Promise<void>;
}

/** Closes what was opened, in reverse order. Replaces AsyncDisposableStack, which Node 20 lacks. */
class Disposal implements AsyncDisposable {
  readonly #opened: AsyncDisposable[] = [];

  use<Value extends AsyncDisposable>(value: Value): Value {
    this.#opened.push(value);
    return value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}

/** Starts a server; cheap enough for every test. Throws an Error that says what failed. */
export async function startServer(
  database: Database,
  provisioned: Provisioned,
  options: ServerOptions = {},
): Promise<ReferenceServer> {
  const { host, authPort, pathPrefix = '', now = Date.now, tokenLifetimeSeconds = 3_600 } = options;
  const separate = options.separateOrigins === true || authPort !== undefined;
  const { rateLimit, events, eventsDir, webhook } = options;
  const opened = new Disposal();
  try {
    const connections = opened.use(database.connect());
    const listeners: Listener[] = [];
    const tls = options.offersHttp2 ? { key: KEY, cert: SELF_SIGNED } : undefined;
    if (options.inProcess && tls) options.inProcess.offersHttp2 = true;
    const open = async (port = 0): Promise<Listener> => {
      const listener = opened.use(options.inProcess?.listen() ?? (await listen({ port, host, http2: tls })));
      listeners.push(listener);
      return listener;
    };
    const api = await open(options.port);
    const auth = separate ? await open(authPort) : api;
    const { publicUrl: baseUrl = `${api.origin}${pathPrefix}` } = options;
    const authUrl = options.publicAuthUrl ?? (separate ? `${auth.origin}${pathPrefix}` : baseUrl);

    const parts: ServiceParts = {
      baseUrl,
      authUrl,
      pathPrefix,
      issuer: authUrl,
      audience: baseUrl,
      tokenLifetimeSeconds,
      store: options.store ?? createScreeningStore(connections, provisioned.onboarded),
      tokens: createTokenIssuer({ issuer: authUrl, audience: baseUrl, signingKeyPem: options.signingKeyPem }),
      clients: provisioned.clients,
      limiter: rateLimit && createRateLimiter(rateLimit),
      now,
    };
    const service = createService(options.wrapParts?.(parts) ?? parts);
    const handler = options.wrapHandler?.(service) ?? service;
    const { tokens } = parts;
    const observation = options.observe?.(() => connections.counts);
    const serve = (listener: Listener, served: Handler): void => {
      const all = withSidePaths(served, { connections, tokens, now, metrics: observation?.metrics });
      listener.handle(all, observation?.observer);
    };
    serve(api, separate ? servingOnly('pages', handler) : handler);
    if (separate) serve(auth, servingOnly('tokens', handler));

    const files: Delivery[] = [];
    const store = async (screenings: Iterable<Screening> | AsyncIterable<Screening>): Promise<void> => {
      await storeScreenings(connections, screenings);
      await Promise.all(files.map((file) => file.settle()));
    };
    // A database that this server did not start keeps running: only the connections of this server are interrupted.
    const outage: Outage = database.outage ?? {
      begin: () => connections.interrupt(),
      end: async () => connections.restore(),
    };
    const operations = opened.use(
      await openOperations(
        (lines) => store(readScreenings(lines, 'stdin')),
        options.wrapOutage?.(outage) ?? outage,
      ),
    );
    const target = await describeTarget(parts, provisioned, operations, options, tls && CERTIFICATE_FILE);
    const deliver = (sink: Sink, tenants: Iterable<string>): Delivery =>
      opened.use(startDelivery(connections, sink, tenants));
    if (events) files.push(deliver(filesSink(events), [target.clients.primary.tenantId]));
    const tenantFile = (tenantId: string): string => join(eventsDir!, `${tenantId}.ndjson`);
    if (eventsDir) files.push(deliver(filesSink(eventsDir, tenantFile), provisioned.onboarded));
    if (webhook) deliver(webhookSink(webhook), provisioned.onboarded);
    await Promise.all(files.map((file) => file.settle()));

    return {
      baseUrl,
      authUrl,
      listeningAt: listeners.map(({ origin }) => origin),
      target: () => target,
      ingest: (screenings) => store(asScreenings(screenings)),
      clear: (tenantId) => forgetTenant(connections, tenantId, ['screening']),
      interruptDatabase: () => connections.interrupt(),
      async stop(graceMs = 0) {
        await Promise.all(listeners.map((listener) => listener.stop(graceMs)));
        await opened[Symbol.asyncDispose]();
      },
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

function* asScreenings(screenings: Iterable<Screening> | Iterable<string>): Generator<Screening> {
  for (const one of screenings) yield typeof one === 'string' ? parseScreening(one) : one;
}
