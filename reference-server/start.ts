/** Starts reference servers: one by itself, or many over one database that is loaded once. */
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseScreening } from '../fixtures/data/dataset.ts';
import type { Screening } from '../fixtures/data/screening.ts';
import { type Connections, type Database, type DatabaseChoice, openDatabase } from './database.ts';
import { createEventFile } from './events.ts';
import { errorAnswer, type Handler, listen, type Listener } from './http.ts';
import {
  type ClientRole,
  defaultProvisioning,
  loadProvisioning,
  type Provisioned,
  type ProvisioningSet,
} from './provisioning.ts';
import { createRateLimiter, type RateLimit } from './rate-limit.ts';
import { createService, type ServiceParts } from './service.ts';
import { createScreeningStore, removeScreenings, storeScreenings } from './store.ts';
import { createTokenIssuer } from './tokens.ts';

export interface ServerOptions {
  readonly host?: string;
  /** api: 0 (the default) for any free port. auth: a port of its own for the token endpoint. */
  readonly ports?: { readonly api?: number; readonly auth?: number };
  /** The token endpoint on an origin of its own, on any free port. */
  readonly separateOrigins?: boolean;
  /** Stands before the paths of the REST API and the token endpoint, such as `/api`. */
  readonly pathPrefix?: string;
  readonly rateLimit?: RateLimit;
  /** Default 3600 (section 8). */
  readonly tokenLifetimeSeconds?: number;
  readonly signingKeyPem?: string;
  /** Milliseconds since the epoch. Default: the clock. */
  readonly now?: () => number;
  /** NDJSON file for primary's events, begun anew; those of the future are appended. */
  readonly eventsFile?: string;
  /** SIGUSR2 to this process interrupts the database, SIGHUP restores it; the target file then says so. */
  readonly faultSignals?: boolean;
  /** Replaces parts of the service: where a fault of the inside goes. */
  readonly wrapParts?: (parts: ServiceParts) => ServiceParts;
  /** Stands before the whole service: where a fault of requests and answers goes. */
  readonly wrapHandler?: (handler: Handler) => Handler;
}

export interface StartOptions extends ServerOptions {
  /** Default auto. */
  readonly database?: DatabaseChoice;
  /** Default: the default set. */
  readonly provisioning?: ProvisioningSet;
}

export interface TargetClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
}

/** A target file's content; paths are absolute. */
export interface ReferenceTarget {
  readonly name: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: { readonly primary: TargetClient } & Partial<Record<ClientRole, TargetClient>>;
  readonly window?: { readonly from: string; readonly to: string };
  readonly dataset?: string;
  readonly secondDataset?: string;
  readonly events?: string;
  readonly expiredToken: string;
  readonly errorCodePointer: string;
  readonly rateLimit?: {
    readonly probe: true;
    readonly maxRequests: number;
    readonly maxSeconds: number;
  };
  readonly fault?: { readonly start: string; readonly stop: string };
  /** Shell command that stores the screenings that it reads, dataset lines on its standard input. */
  readonly ingest: string;
}

export interface ReferenceServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly databaseDescription: string;
  target(): ReferenceTarget;
  /** Stores screenings, or dataset lines, while the server runs; each becomes an event too. */
  ingest(screenings: Iterable<Screening> | Iterable<string>): Promise<void>;
  /** Takes all screenings of a tenant away. */
  clear(tenantId: string): Promise<void>;
  interruptDatabase(): Promise<void>;
  restoreDatabase(): Promise<void>;
  stop(): Promise<void>;
}

const EVENTS_EVERY_MS = 250;

/** Database, data and server in one. Throws an Error that says what could not be had. */
export async function startReferenceServer(options: StartOptions = {}): Promise<ReferenceServer> {
  const started: AsyncDisposable[] = [];
  const stop = async (): Promise<void> => {
    for (const part of started.splice(0).reverse()) await part[Symbol.asyncDispose]();
  };
  try {
    const database = await openDatabase(options.database);
    started.push(database);
    const provisioned = await loadProvisioning(database, options.provisioning ?? defaultProvisioning());
    started.push(provisioned);
    const server = await startServer(database, provisioned, options);
    started.push(server);
    return { ...server, stop, [Symbol.asyncDispose]: stop };
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
  const connections = database.connect();
  const listeners: Listener[] = [];
  const open = async (port = 0): Promise<Listener> => {
    const listener = await listen({ port, ...(host ? { host } : {}) });
    listeners.push(listener);
    return listener;
  };

  try {
    const api = await open(ports.api);
    const auth = separate ? await open(ports.auth) : api;
    const baseUrl = `${api.origin}${pathPrefix}`;
    const authUrl = `${auth.origin}${pathPrefix}`;

    const parts: ServiceParts = {
      baseUrl,
      authUrl,
      issuer: authUrl,
      audience: baseUrl,
      tokenLifetimeSeconds,
      store: createScreeningStore(connections, provisioned.onboarded),
      tokens: createTokenIssuer({
        issuer: authUrl,
        audience: baseUrl,
        ...(options.signingKeyPem ? { signingKeyPem: options.signingKeyPem } : {}),
      }),
      clients: provisioned.clients,
      ...(options.rateLimit ? { limiter: createRateLimiter(options.rateLimit) } : {}),
      now,
    };
    const service = createService(options.wrapParts?.(parts) ?? parts);
    const handler = options.wrapHandler?.(service) ?? service;
    if (separate) {
      const tokenPath = `${pathPrefix}/oauth/`;
      api.handle(onlyWhere((path) => !path.startsWith(tokenPath), handler));
      auth.handle(onlyWhere((path) => path.startsWith(tokenPath), handler));
    } else {
      api.handle(handler);
    }

    const target = await describe(parts, database, provisioned, options);
    // What an earlier run left there speaks of other data.
    if (options.eventsFile) await rm(options.eventsFile, { force: true });
    const events = followEvents(options.eventsFile, target.clients.primary.tenantId, connections);
    const unhook = options.faultSignals ? hookFaultSignals(connections) : () => {};
    await events.append();

    const stop = async (): Promise<void> => {
      unhook();
      await events.stop();
      await Promise.all(listeners.map((listener) => listener.stop()));
      await connections.stop();
    };
    return {
      baseUrl,
      authUrl,
      databaseDescription: database.description,
      target: () => target,
      async ingest(screenings) {
        await storeScreenings(connections, asScreenings(screenings));
        await events.append();
      },
      clear: (tenantId) => removeScreenings(connections, tenantId),
      interruptDatabase: () => connections.interrupt(),
      restoreDatabase: async () => connections.restore(),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.stop()));
    await connections.stop();
    throw error;
  }
}

/** With two origins, each serves its own paths only. */
function onlyWhere(served: (path: string) => boolean, handler: Handler): Handler {
  return async (request) =>
    served(request.path) ? handler(request) : errorAnswer(404, 'not_found', 'there is nothing at this path');
}

const INGEST = fileURLToPath(new URL('ingest.ts', import.meta.url));
const TSX = fileURLToPath(import.meta.resolve('tsx/cli'));
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

async function describe(
  parts: ServiceParts,
  database: Database,
  { set, window, files }: Provisioned,
  { rateLimit, eventsFile, faultSignals }: ServerOptions,
): Promise<ReferenceTarget> {
  const clients: Partial<Record<ClientRole, TargetClient>> = {};
  for (const { role, clientId, clientSecret, tenantId } of set.clients) {
    if (role) clients[role] = { clientId, clientSecret, tenantId };
  }
  const { primary } = clients;
  if (!primary) throw new Error('the provisioning has no client with the role "primary"');
  const events = eventsFile ?? files.events;
  return {
    name: 'reference server',
    baseUrl: parts.baseUrl,
    authUrl: parts.authUrl,
    clients: { ...clients, primary },
    ...(window ? { window } : {}),
    ...files,
    ...(events ? { events } : {}),
    expiredToken: await mintExpired(parts, primary),
    errorCodePointer: '/code',
    ...(rateLimit ? { rateLimit: probeOf(rateLimit) } : {}),
    ...(faultSignals
      ? { fault: { start: `kill -USR2 ${process.pid}`, stop: `kill -HUP ${process.pid}` } }
      : {}),
    ingest: [process.execPath, TSX, INGEST, '--database-url', database.url].map(quoted).join(' '),
  };
}

/** A real token that ran out an hour ago. */
function mintExpired(parts: ServiceParts, { clientId, tenantId }: TargetClient): Promise<string> {
  const exp = Math.floor(parts.now() / 1000) - 3_600;
  return parts.tokens.mint({
    iss: parts.issuer,
    aud: parts.audience,
    sub: clientId,
    iat: exp - 3_600,
    exp,
    scope: 'screenings.read',
    tenant_id: tenantId,
  });
}

/** Enough requests and time to get past the limit once and be served again. */
function probeOf({ limit, windowMs, burst = 0 }: RateLimit): NonNullable<ReferenceTarget['rateLimit']> {
  return {
    probe: true,
    maxRequests: Math.max(2_000, 3 * (limit + burst)),
    maxSeconds: Math.max(60, Math.ceil((3 * windowMs) / 1_000)),
  };
}

function followEvents(file: string | undefined, tenantId: string, connections: Connections) {
  if (file === undefined) return { append: async () => {}, stop: async () => {} };
  const events = createEventFile(file, tenantId, connections);
  // Screenings come in by other processes too.
  const timer = setInterval(() => void events.append().catch(() => undefined), EVENTS_EVERY_MS).unref();
  return {
    append: () => events.append(),
    async stop() {
      clearInterval(timer);
      await events.append().catch(() => undefined);
    },
  };
}

function hookFaultSignals(connections: Connections): () => void {
  const interrupt = (): void => void connections.interrupt();
  const restore = (): void => connections.restore();
  process.on('SIGUSR2', interrupt).on('SIGHUP', restore);
  return () => void process.off('SIGUSR2', interrupt).off('SIGHUP', restore);
}

function* asScreenings(screenings: Iterable<Screening> | Iterable<string>): Generator<Screening> {
  for (const one of screenings) yield typeof one === 'string' ? parseScreening(one) : one;
}
