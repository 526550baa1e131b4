/** A client under test, however it is started: given its values, it ends with a status and what it printed. */
import type { Given } from './stage.ts';
import type { World } from './world.ts';

export interface Ended {
  /** Undefined where it was stopped, or nobody said. */
  readonly status: number | undefined;
  /** Undefined where nobody handed it over. */
  readonly stdout: string | undefined;
  readonly stderr: string;
}

/** Runs the client once. `signal` stops it. Rejects with a UsageError where it can't be started. */
export type Client = (given: Given, signal: AbortSignal, situation: string, world: World) => Promise<Ended>;

/** The values that a client is given, by name: `base_url` is SCREENINGS_BASE_URL in its environment. */
export const valuesOf = (given: Given): Readonly<Record<string, string | number | undefined>> => ({
  base_url: given.baseUrl,
  auth_url: given.authUrl,
  client_id: given.clientId,
  client_secret: given.clientSecret,
  tenant_id: given.tenantId,
  from: given.from,
  to: given.to,
  page_size: given.pageSize,
  events: given.events,
});

/** Where Node, OpenSSL (Python, Ruby, PHP, Go …), curl and requests look for the certificates to trust. */
const TRUST = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE'];

export function environmentOf(given: Given): Record<string, string> {
  const named = Object.entries(valuesOf(given)).map(
    ([name, value]) => [`SCREENINGS_${name.toUpperCase()}`, value] as const,
  );
  const all = [...named, ...TRUST.map((name) => [name, given.trusted] as const)];
  return Object.fromEntries(
    all.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
