/** The Screenings Retrieval Service: the token endpoint (4.1) and the REST API (4.2) in one handler; and side paths. */
import { errorAnswer, jsonAnswer, notFound, splitTarget } from './http.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from './http.ts';
import type { ServiceParts } from '../parts.ts';
import { answerScreenings, authenticate, unavailable } from './screenings-endpoint.ts';
import { answerToken } from './token-endpoint.ts';
import type { Connections } from '../store/connections.ts';
import { envelope, readEvents } from '../events.ts';

/** Returns the handler; all state is in the parts. */
export function createService(parts: ServiceParts): Handler {
  const tokenPath = `${parts.pathPrefix}/oauth/token`;
  const tenantsPath = `${parts.pathPrefix}/v1/tenants/`;

  return async (request) => {
    const [path, query] = splitTarget(request.path);
    if (path === tokenPath)
      return request.method === 'POST' ? answerToken(request, parts) : methodNotAllowed('POST');
    const tenantId = path.startsWith(tenantsPath)
      ? /^([^/]+)\/screenings$/.exec(path.slice(tenantsPath.length))?.[1]
      : undefined;
    if (tenantId !== undefined) {
      // HEAD is answered like GET; node leaves out the body (RFC 9110, 9.3.2).
      return request.method === 'GET' || request.method === 'HEAD'
        ? answerScreenings({ tenantId, query, headers: request.headers }, parts)
        : methodNotAllowed('GET, HEAD');
    }
    return notFound;
  };
}

function methodNotAllowed(allow: string): ServiceAnswer {
  return errorAnswer(405, 'method_not_allowed', `this path supports only ${allow}`, [['allow', allow]]);
}

// -- paths outside the API: health, metrics and the outbox --------------------------------------------

interface SideParts {
  readonly connections: Connections;
  readonly tokens: ServiceParts['tokens'];
  readonly now: () => number;
  readonly metrics?: () => Promise<string>;
}

const EVENTS_PER_PAGE = 1_000;

/** Answers these paths before the handler and before any fault. */
export function withSidePaths(handler: Handler, parts: SideParts): Handler {
  const { connections, metrics } = parts;
  const routes = new Map<string, () => Promise<ServiceAnswer>>([
    ['/healthz', async () => jsonAnswer(200, { status: 'alive' })],
    ['/readyz', () => ready(connections)],
  ]);
  const metricsHeaders = [['content-type', 'text/plain; version=0.0.4; charset=utf-8']] as const;
  if (metrics)
    routes.set('/metrics', async () => ({ status: 200, headers: metricsHeaders, body: await metrics() }));
  return async (request) => {
    const [path, query] = splitTarget(request.path);
    const tenantId = /^\/events\/([^/]+)$/.exec(path)?.[1];
    const route = tenantId === undefined ? routes.get(path) : () => outbox(tenantId, query, request, parts);
    if (!route) return handler(request);
    return request.method === 'GET' || request.method === 'HEAD' ? route() : methodNotAllowed('GET, HEAD');
  };
}

async function ready(connections: Connections): Promise<ServiceAnswer> {
  try {
    await connections.query({ text: 'SELECT 1' });
    return jsonAnswer(200, { status: 'ready' });
  } catch {
    return jsonAnswer(503, { status: 'the database does not answer' });
  }
}

/** A tenant's events for its own token, as a batch of CloudEvents; `Link` leads to later events. */
async function outbox(
  tenantId: string,
  query: string,
  { headers }: ServiceRequest,
  { connections, tokens, now }: SideParts,
): Promise<ServiceAnswer> {
  const claims = await authenticate(headers['authorization'], tokens, Math.floor(now() / 1000));
  if ('status' in claims) return claims;
  if (tenantId.toLowerCase() !== claims.tenant_id.toLowerCase())
    return errorAnswer(403, 'forbidden', 'this token is for another tenant');
  const after = new URLSearchParams(query).get('after') ?? '0';
  if (!/^\d{1,18}$/.test(after)) return errorAnswer(400, 'invalid_request', 'after is not a sequence number');
  try {
    const events = await readEvents(connections, claims.tenant_id, BigInt(after), EVENTS_PER_PAGE);
    return {
      status: 200,
      headers: [
        ['content-type', 'application/cloudevents-batch+json'],
        ['link', `</events/${tenantId}?after=${events.at(-1)?.sequence ?? after}>; rel="next"`],
        ['cache-control', 'no-store'],
      ],
      body: `[${events.map(envelope).join(',')}]`,
    };
  } catch (error) {
    return unavailable(error);
  }
}
