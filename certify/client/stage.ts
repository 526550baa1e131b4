/** The server of one situation: the reference server's request handler over a few screenings in memory. */
import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../engine/clock.ts';
import { MAX_PAGE_SIZE, type PageQuery } from '../../engine/client/page.ts';
import type { Screening } from '../../engine/data/dataset.ts';
import { listen, parseForm, servingOnly } from '../../reference-server/http/http.ts';
import type { Handler, Listener, ServiceRequest } from '../../reference-server/http/http.ts';
import { sized } from '../../reference-server/faults/rows.ts';
import { both, tokenBody } from '../../reference-server/run/alter.ts';
import { memoryParts } from '../../reference-server/store/memory.ts';
import { createService } from '../../reference-server/http/service.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { Recorder } from './record.ts';
import { UsageError } from '../../engine/errors.ts';
import { CERTIFICATE_FILE, secured, type Secured } from '../../reference-server/http/certificates.ts';

export const TENANT = '5f0c9a52-7c1e-4e0b-9d3a-2b6d8e4f1a07';

export type Window = Pick<PageQuery, 'from' | 'to'>;

export interface Given extends Window {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
  readonly pageSize?: number;
  readonly events?: string;
  /** The path of a file of certificates that the client must trust. */
  readonly trusted?: string;
}

export interface StageOptions {
  readonly screenings: readonly Screening[];
  readonly window: Window;
  /** For the client, and the most items on a page, whatever pageSize is requested (section 2.4). */
  readonly pageSize?: number;
  readonly clientSecret?: string;
  readonly server?: Pick<
    ServerOptions,
    'pathPrefix' | 'separateOrigins' | 'tokenLifetimeSeconds' | 'wrapHandler' | 'wrapParts'
  >;
  /** Serves TLS at this host; the certificate names localhost. */
  readonly tlsHost?: 'localhost' | '127.0.0.1';
}

/** Starts the server of a situation. `port` 0: any free port. */
export async function openStage(options: StageOptions, world: World, clientSecret: string, port = 0) {
  const { server = {}, screenings, window, pageSize, tlsHost } = options;
  const { pathPrefix = '', tokenLifetimeSeconds = 3600 } = server;
  const api = await world.listen(port, tlsHost);
  const auth = server.separateOrigins ? await world.listen(0, tlsHost) : api;
  const recorder = new Recorder(world.clock);
  const [baseUrl, authUrl] = [`${api.origin}${pathPrefix}`, `${auth.origin}${pathPrefix}`];
  const given: Given = {
    ...{ baseUrl, authUrl },
    clientId: `consumer-${randomUUID().slice(0, 8)}`,
    clientSecret: options.clientSecret ?? clientSecret,
    tenantId: TENANT,
    ...{ ...window, pageSize, trusted: tlsHost && CERTIFICATE_FILE },
  };
  const parts = memoryParts(new Map([[TENANT, screenings]]), [given], {
    ...{ baseUrl, authUrl, pathPrefix, tokenLifetimeSeconds },
    now: () => world.clock.now(),
  });
  const altered = both(grantingAll, atMost(pageSize), server);
  const service = createService(altered.wrapParts!(parts));
  const played = altered.wrapHandler!(service);
  // HEAD requests bypass the situation, because a client may send them first.
  const handler: Handler = async (request) =>
    request.method === 'HEAD' ? service(request) : played(request);
  const watched = (served: Handler): Handler => recorder.watch(served, api.origin);
  api.handle(watched(auth === api ? handler : servingOnly('pages', handler)));
  if (auth !== api) auth.handle(watched(servingOnly('tokens', handler)));
  return {
    given,
    recorder,
    plainRequests: () => api.plainRequests?.() ?? 0,
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([...new Set([api, auth])].map((listener) => listener.stop()));
    },
  };
}

export const scopesOf = ({ body }: ServiceRequest): readonly string[] =>
  parseForm(body.toString())?.get('scope')?.split(' ').filter(Boolean) ?? [];

/** Says that every requested scope is granted, so that only one situation is about scopes. */
const grantingAll = tokenBody((body, request) => ({ ...body, scope: scopesOf(request).join(' ') }));

/** Pages hold at most this many items. */
export const atMost = (items = MAX_PAGE_SIZE): ServerOptions => sized((asked) => Math.min(asked, items));

export interface World {
  readonly clock: Clock;
  readonly fetch: typeof fetch;
  /** `port` 0: any free port. `tlsHost`: serves TLS at that host; the certificate names localhost. */
  listen(port: number, tlsHost?: string): Promise<Listener & Partial<Secured>>;
}

/** Sockets and the system clock, monotonic and finer than milliseconds. */
export function realWorld(): World {
  const beganMs = Date.now() - performance.now();
  const clock: Clock = { ...systemClock, now: () => beganMs + performance.now() };
  return {
    ...{ clock, fetch },
    async listen(port, tlsHost) {
      if (tlsHost !== undefined) return secured(await listen(), tlsHost, port);
      return listen({ port }).catch((error: NodeJS.ErrnoException): never => {
        throw error.code === 'EADDRINUSE' ? new UsageError(`--listen: port ${port} is taken`) : error;
      });
    },
  };
}
