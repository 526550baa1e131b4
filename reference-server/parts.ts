/**
 * The parts of the service. Each can be replaced by another implementation: a function, or a plain object with functions
 * that need no `this`, because faults and variants copy it with one of them replaced.
 */
import type { Screening } from '../engine/data/dataset.ts';
import type { Instant } from '../engine/data/instant.ts';

/** A query of one page: the screenings in [from, to), or those strictly after (from, fromId), by (instant, id). */
export interface PageQuery {
  readonly tenantId: string;
  readonly from: Instant;
  readonly to: Instant;
  /** Fits into 64 bits. */
  readonly fromId?: bigint;
  readonly pageSize: number;
}

/** Its testTime and its text are as recorded. */
export type StoredScreening = Omit<Screening, 'tenantId'>;

export interface StoredPage {
  /** In order; at most pageSize. */
  readonly items: readonly StoredScreening[];
  readonly more: boolean;
}

export interface ScreeningStore {
  /** Throws StoreUnavailable while the store does not answer. */
  page(query: PageQuery): Promise<StoredPage>;
  isOnboarded(tenantId: string): Promise<boolean>;
}

/** The store does not answer: the service answers 503. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** Makes the store unavailable, and available again with everything that it had acknowledged. */
export interface Outage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

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
  /** Returns the claims of a token of this issuer that is valid at `nowSeconds`; undefined for any other text. */
  verify(token: string, nowSeconds: number): Promise<TokenClaims | undefined>;
}

export interface Client {
  readonly clientId: string;
  readonly tenantId: string;
  readonly scopes: readonly string[];
  readonly grantTypes: readonly string[];
  /** The grant is suspended: invalid_grant. */
  readonly suspended: boolean;
}

/** What an ordinary client may do. */
export const GRANTED = { scopes: ['screenings.read'], grantTypes: ['client_credentials'], suspended: false };

/** Too many unconfirmed secrets are waiting to be checked: the token endpoint answers 429. */
export class TooManyGuesses extends Error {
  override readonly name = 'TooManyGuesses';
}

export interface ClientRegistry {
  /** Undefined if id or secret is wrong, after the same time. Throws TooManyGuesses. */
  authenticate(clientId: string, clientSecret: string): Promise<Client | undefined>;
}

/** Counts a request; the seconds to wait if it is rejected. `nowMs`: milliseconds since the epoch. */
export type RateLimiter = (clientId: string, nowMs: number) => number | undefined;

export interface ServiceParts {
  /** The REST API's public URL, without a trailing slash. */
  readonly baseUrl: string;
  /** The token endpoint's public base URL, without a trailing slash. */
  readonly authUrl: string;
  /** Prefix of both paths as they arrive; a proxy may have removed a part of the public path. */
  readonly pathPrefix: string;
  readonly issuer: string;
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
