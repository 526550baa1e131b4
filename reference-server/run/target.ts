/** The content of a reference server's target file. */
import type { Operations } from './operations.ts';
import type { ServiceParts } from '../parts.ts';
import type { ClientRole, Provisioned } from './provisioning.ts';
import type { RateLimit } from '../http/rate-limit.ts';

export interface TargetClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
}

/** Paths are absolute. */
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
  /** File of the certificate, if it is self-signed. */
  readonly ca?: string;
  readonly rateLimit?: {
    readonly probe: true;
    readonly maxRequests: number;
    readonly maxSeconds: number;
  };
  readonly fault?: { readonly start: string; readonly stop: string };
  /** Shell command that stores the dataset lines on its standard input. */
  readonly ingest: string;
}

interface Described {
  readonly rateLimit?: RateLimit;
  readonly eventsFile?: string;
  /** Whether the target file has the commands for an outage. */
  readonly faultCommands: boolean;
  readonly ca?: string;
}

export async function describeTarget(
  parts: ServiceParts,
  { set, window, files }: Provisioned,
  operations: Operations,
  { rateLimit, eventsFile, faultCommands, ca }: Described,
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
    ...(ca ? { ca } : {}),
    ...(rateLimit ? { rateLimit: probeOf(rateLimit) } : {}),
    ...(faultCommands
      ? { fault: { start: operations.command('outage-begin'), stop: operations.command('outage-end') } }
      : {}),
    ingest: operations.command('ingest'),
  };
}

/** Long enough ago for a leeway of five minutes and a clock that is ten minutes late. */
const EXPIRED_SECONDS = 1_000;

/** A token that expired a short time ago, so that a long leeway shows. */
function mintExpired(parts: ServiceParts, { clientId, tenantId }: TargetClient): Promise<string> {
  const exp = Math.floor(parts.now() / 1000) - EXPIRED_SECONDS;
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

/** Enough requests and time to exceed the limit once and be admitted again. */
function probeOf({ limit, windowMs, burst = 0 }: RateLimit): NonNullable<ReferenceTarget['rateLimit']> {
  return {
    probe: true,
    maxRequests: Math.max(2_000, 3 * (limit + burst)),
    maxSeconds: Math.max(60, Math.ceil((3 * windowMs) / 1_000)),
  };
}
