/** A client under test: given its values, it ends with an exit status and output. */
import type { Given } from './stage.ts';
import type { World } from './world.ts';

export interface Ended {
  /** Undefined if it was stopped or the status is unknown. */
  readonly status: number | undefined;
  /** Undefined if its output is unknown. */
  readonly stdout: string | undefined;
  readonly stderr: string;
}

/** Runs the client once; `signal` stops it. Rejects with a UsageError if it cannot be started. */
export type Client = (given: Given, signal: AbortSignal, situation: string, world: World) => Promise<Ended>;

/** The values for a client by name: `base_url` is SCREENINGS_BASE_URL in its environment. */
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

/** Variables from which Node, OpenSSL (Python, Ruby, PHP, Go …), curl and requests read the certificates to trust. */
const TRUST_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE'];

export function environmentOf(given: Given): Record<string, string> {
  const named = Object.entries(valuesOf(given)).map(
    ([name, value]) => [`SCREENINGS_${name.toUpperCase()}`, value] as const,
  );
  const all = [...named, ...TRUST_VARIABLES.map((name) => [name, given.trusted] as const)];
  return Object.fromEntries(
    all.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
