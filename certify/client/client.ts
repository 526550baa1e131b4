/** A client under test, however it is started: given its values, it ends with a status and what it printed. */
import type { Given } from './stage.ts';

export interface Ended {
  /** Undefined where it was stopped, or nobody said. */
  readonly status: number | undefined;
  /** Undefined where nobody handed it over. */
  readonly stdout: string | undefined;
  readonly stderr: string;
}

/** Runs the client once. `signal` stops it. Rejects with a UsageError where it can't be started. */
export type Client = (given: Given, signal: AbortSignal, situation: string) => Promise<Ended>;

/** The environment of section "What a client under test is given". */
export function environmentOf(given: Given): Record<string, string> {
  const values: Record<string, string | number | undefined> = {
    SCREENINGS_BASE_URL: given.baseUrl,
    SCREENINGS_AUTH_URL: given.authUrl,
    SCREENINGS_CLIENT_ID: given.clientId,
    SCREENINGS_CLIENT_SECRET: given.clientSecret,
    SCREENINGS_TENANT_ID: given.tenantId,
    SCREENINGS_FROM: given.from,
    SCREENINGS_TO: given.to,
    SCREENINGS_PAGE_SIZE: given.pageSize,
    SCREENINGS_EVENTS: given.events,
    ...(given.trusted === undefined ? {} : trusting(given.trusted)),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** How Node, OpenSSL (Python, Ruby, PHP, Go …), curl and requests are told whom to trust. */
const trusting = (file: string): Record<string, string> => ({
  NODE_EXTRA_CA_CERTS: file,
  SSL_CERT_FILE: file,
  CURL_CA_BUNDLE: file,
  REQUESTS_CA_BUNDLE: file,
});
