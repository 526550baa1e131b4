/** What the service is built from. Each part can be replaced by another of the same shape. */
import type { Instant } from '../engine/data/instant.ts';

/** One page asked of the store: the screenings of [from, to), or strictly after (from, fromId), by (instant, id). */
export interface PageQuery {
  readonly tenantId: string;
  readonly from: Instant;
  readonly to: Instant;
  /** Within 64 bits. */
  readonly fromId?: bigint;
  readonly pageSize: number;
}

export interface StoredScreening {
  readonly id: bigint;
  /** As it was recorded. */
  readonly testTime: string;
  /** The JSON text of the whole screening, as it was recorded. */
  readonly json: string;
}

export interface StoredPage {
  /** In order, at most pageSize. */
  readonly items: readonly StoredScreening[];
  /** Whether further screenings of the window follow. */
  readonly more: boolean;
}

export interface ScreeningStore {
  /** Throws StoreUnavailable while the store can't be reached. */
  page(query: PageQuery): Promise<StoredPage>;
  isOnboarded(tenantId: string): Promise<boolean>;
}

/** The store can't be reached at the moment: the service answers 503. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The claims of section 2.2. */
export interface TokenClaims {
  readonly iss: string;
  readonly aud: string;
  readonly sub: string;
  /** Epoch seconds. */
  readonly iat: number;
  /** Epoch seconds. */
  readonly exp: number;
  readonly scope: string;
  readonly tenant_id: string;
}

export interface TokenIssuer {
  mint(claims: TokenClaims): Promise<string>;
  /** The claims of a token of this issuer that has not expired at `nowSeconds`; undefined for any other text. */
  verify(token: string, nowSeconds: number): Promise<TokenClaims | undefined>;
}

export interface Client {
  readonly clientId: string;
  readonly tenantId: string;
  /** Scopes that may be granted. */
  readonly scopes: readonly string[];
  readonly grantTypes: readonly string[];
  /** The client may use the grant, but it was suspended: invalid_grant. */
  readonly suspended: boolean;
}

/** Secrets are tried faster than they can be checked: the token endpoint answers 429. */
export class TooManyGuesses extends Error {
  override readonly name = 'TooManyGuesses';
}

export interface ClientRegistry {
  /**
   * The client of that id and secret; undefined if there is none, in the same time for either reason.
   * Throws TooManyGuesses.
   */
  authenticate(clientId: string, clientSecret: string): Promise<Client | undefined>;
}

export type Admission =
  { readonly admitted: true } | { readonly admitted: false; readonly retryAfterSeconds: number };

export interface RateLimiter {
  /** Counts one request of a client; `nowMs` is milliseconds since the epoch. */
  admit(clientId: string, nowMs: number): Admission;
}

export interface ServiceParts {
  /** Where clients find the REST API, without a trailing slash. */
  readonly baseUrl: string;
  /** Where clients find the token endpoint, without a trailing slash. */
  readonly authUrl: string;
  /** What stands before the paths of both where they arrive: a proxy may have taken a part of the address away. */
  readonly pathPrefix: string;
  /** The `iss` claim. */
  readonly issuer: string;
  /** The `aud` claim. */
  readonly audience: string;
  /** Section 8: 3600. */
  readonly tokenLifetimeSeconds: number;
  readonly store: ScreeningStore;
  readonly tokens: TokenIssuer;
  readonly clients: ClientRegistry;
  readonly limiter?: RateLimiter;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
