/** Starts reference servers: one by itself, or many over one database that is loaded once. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseScreening, readScreenings } from '../../engine/data/dataset.ts';
import type { Screening } from '../../engine/data/screening.ts';
import type { Connections } from '../store/connections.ts';
import { type Database, type DatabaseChoice, openDatabase } from '../store/database.ts';
import { KEY, SELF_SIGNED } from '../http/certificates.ts';
import { Disposal } from './disposal.ts';
import { type Delivery, type Sink, startDelivery } from '../events/delivery.ts';
import { listen, onlyWhere, type Handler, type Listener } from '../http/http.ts';
import type { InProcess } from '../http/in-process.ts';
import type { Observer } from '../http/outcome.ts';
import type { ScreeningStore } from '../parts.ts';
import { openOperations } from './operations.ts';
import {
  defaultProvisioning,
  loadProvisioning,
  type Provisioned,
  type ProvisioningSet,
} from './provisioning.ts';
import { createRateLimiter, type RateLimit } from '../http/rate-limit.ts';
import type { Outage } from '../store/running-postgres.ts';
import { createService, type ServiceParts } from '../http/service.ts';
import { withSidePaths } from '../http/side-paths.ts';
import { directorySink, fileSink, webhookSink } from '../events/sinks.ts';
import { createScreeningStore, removeScreenings, storeScreenings } from '../store/store.ts';
import { describeTarget, type ReferenceTarget } from './target.ts';
import { createTokenIssuer } from '../auth/tokens.ts';

export interface ServerOptions {
  readonly host?: string;
  /** api: 0 (the default) for any free port. auth: a port of its own for the token endpoint. */
  readonly ports?: { readonly api?: number; readonly auth?: number };
  /** The token endpoint on an origin of its own, on any free port. */
  readonly separateOrigins?: boolean;
  /** Stands before the paths of the REST API and the token endpoint, such as `/api`. */
  readonly pathPrefix?: string;
  /** Over TLS, where HTTP/2 is offered beside HTTP/1.1; the certificate is one for localhost that signs itself. */
  readonly offersHttp2?: boolean;
  readonly rateLimit?: RateLimit;
  /** Default 3600 (section 8). */
  readonly tokenLifetimeSeconds?: number;
  readonly signingKeyPem?: string;
  /** Milliseconds since the epoch. Default: the clock. */
  readonly now?: () => number;
  /** NDJSON file for primary's events, truncated at the start; later events are appended. */
  readonly eventsFile?: string;
  /** The same for every tenant: TENANT.ndjson in this directory. */
  readonly eventsDirectory?: string;
  /** http or https address that every tenant's events are posted to. */
  readonly webhook?: string;
  /** Where clients find the server, if it stands behind a proxy; a path that the proxy keeps is the pathPrefix too. */
  readonly publicUrl?: string;
  /** The same for the token endpoint. Default: publicUrl, unless the token endpoint has an origin of its own. */
  readonly publicAuthUrl?: string;
  /** The target file gets commands that begin and end an outage of the database. */
  readonly faultCommands?: boolean;
  /** Is told of every request; given how to count the connections to the database. */
  readonly observe?: (counts: () => Connections['counts']) => Observation;
  /** Listens there instead of on ports. */
  readonly inProcess?: InProcess;
  /** Where pages come from. Default: the database. */
  readonly store?: ScreeningStore;
  /** Replaces parts of the service: where a fault of the inside goes. */
  readonly wrapParts?: (parts: ServiceParts) => ServiceParts;
  /** Stands before the whole service: where a fault of requests and answers goes. */
  readonly wrapHandler?: (handler: Handler) => Handler;
  /** Stands before the outage that the fault commands cause. */
  readonly wrapOutage?: (outage: Outage) => Outage;
}

export interface Observation {
  readonly observer: Observer;
  /** Answered at /metrics. */
  readonly metrics?: () => Promise<string>;
}

interface StartOptions extends ServerOptions {
  /** Default auto. */
  readonly database?: DatabaseChoice;
  /** Default: the default set. */
  readonly provisioning?: ProvisioningSet;
}

export interface ReferenceServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly authUrl: string;
  /** The origins that it listens on: with a public address other than baseUrl's. */
  readonly listeningAt: readonly string[];
  readonly databaseDescription: string;
  target(): ReferenceTarget;
  /** Stores screenings, or dataset lines, while the server runs; each becomes an event too. */
  ingest(screenings: Iterable<Screening> | Iterable<string>): Promise<void>;
  /** Takes all screenings of a tenant away. */
  clear(tenantId: string): Promise<void>;
  interruptDatabase(): Promise<void>;
  restoreDatabase(): Promise<void>;
  /** Requests under way have so long to be answered. Default 0. */
  stop(graceMs?: number): Promise<void>;
}

/** Database, data and server in one. Throws an Error that says what could not be had. */
export async function startReferenceServer(options: StartOptions = {}): Promise<ReferenceServer> {
  const started = new Disposal();
  const stop = (): Promise<void> => started[Symbol.asyncDispose]();
  try {
    const database = started.use(await openDatabase(options.database));
    const provisioned = started.use(
      await loadProvisioning(database, options.provisioning ?? defaultProvisioning()),
    );
    const server = started.use(await startServer(database, provisioned, options));
    return {
      ...server,
      async stop(graceMs) {
        await server.stop(graceMs);
        await stop();
      },
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** One server over a database that is open and loaded: cheap, so that tests can start many of them. */
export async function startServer(
  database: Database,
  provisioned: Provisioned,
  options: ServerOptions = {},
): Promise<ReferenceServer> {
  const { host, ports = {}, pathPrefix = '', now = Date.now, tokenLifetimeSeconds = 3_600 } = options;
  const separate = options.separateOrigins === true || ports.auth !== undefined;
  const { rateLimit, eventsFile, faultCommands = false } = options;
  const opened = new Disposal();
  try {
    const connections = opened.use(database.connect());
    const listeners: Listener[] = [];
    const tls = options.offersHttp2 && { key: KEY, cert: SELF_SIGNED };
    if (options.inProcess && tls) options.inProcess.offersHttp2 = true;
    const open = async (port = 0): Promise<Listener> => {
      const listener = opened.use(
        options.inProcess?.listen() ??
          (await listen({ port, ...(host ? { host } : {}), ...(tls ? { http2: tls } : {}) })),
      );
      listeners.push(listener);
      return listener;
    };
    const api = await open(ports.api);
    const auth = separate ? await open(ports.auth) : api;
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
      tokens: createTokenIssuer({
        issuer: authUrl,
        audience: baseUrl,
        ...(options.signingKeyPem ? { signingKeyPem: options.signingKeyPem } : {}),
      }),
      clients: provisioned.clients,
      ...(rateLimit ? { limiter: createRateLimiter(rateLimit) } : {}),
      now,
    };
    const service = createService(options.wrapParts?.(parts) ?? parts);
    const handler = options.wrapHandler?.(service) ?? service;
    const { tokens } = parts;
    const observation = options.observe?.(() => connections.counts);
    const serve = (listener: Listener, served: Handler): void => {
      const { metrics } = observation ?? {};
      const all = withSidePaths(served, { connections, tokens, now, ...(metrics ? { metrics } : {}) });
      listener.handle(all, observation?.observer);
    };
    if (separate) {
      const tokenPath = `${pathPrefix}/oauth/`;
      serve(
        api,
        onlyWhere((path) => !path.startsWith(tokenPath), handler),
      );
      serve(
        auth,
        onlyWhere((path) => path.startsWith(tokenPath), handler),
      );
    } else {
      serve(api, handler);
    }

    const files: Delivery[] = [];
    const store = async (screenings: Iterable<Screening> | AsyncIterable<Screening>): Promise<void> => {
      await storeScreenings(connections, screenings);
      await Promise.all(files.map((file) => file.settle()));
    };
    const outage = database.outage ?? cutOff(connections);
    const operations = opened.use(
      await openOperations(
        (lines) => store(readScreenings(lines, 'stdin')),
        options.wrapOutage?.(outage) ?? outage,
      ),
    );
    const ca = join(operations.directory, 'ca.pem');
    if (tls) await writeFile(ca, SELF_SIGNED);
    const target = await describeTarget(parts, provisioned, operations, {
      ...(rateLimit ? { rateLimit } : {}),
      ...(eventsFile ? { eventsFile } : {}),
      faultCommands,
      ...(tls ? { ca } : {}),
    });
    const deliver = (sink: Sink, tenants: Iterable<string>): Delivery =>
      opened.use(startDelivery(connections, sink, tenants));
    const { eventsDirectory, webhook } = options;
    if (eventsFile) files.push(deliver(fileSink(eventsFile), [target.clients.primary.tenantId]));
    if (eventsDirectory) files.push(deliver(directorySink(eventsDirectory), provisioned.onboarded));
    if (webhook) deliver(webhookSink(webhook), provisioned.onboarded);
    await Promise.all(files.map((file) => file.settle()));

    return {
      baseUrl,
      authUrl,
      listeningAt: listeners.map(({ origin }) => origin),
      databaseDescription: database.description,
      target: () => target,
      ingest: (screenings) => store(asScreenings(screenings)),
      clear: (tenantId) => removeScreenings(connections, tenantId),
      interruptDatabase: () => connections.interrupt(),
      restoreDatabase: async () => connections.restore(),
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

/** The nearest to an outage where the database is not this server's own: this server's connections to it. */
function cutOff(connections: Connections): Outage {
  return { begin: () => connections.interrupt(), end: async () => connections.restore() };
}

function* asScreenings(screenings: Iterable<Screening> | Iterable<string>): Generator<Screening> {
  for (const one of screenings) yield typeof one === 'string' ? parseScreening(one) : one;
}
