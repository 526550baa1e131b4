/** A fault: one mistake in an otherwise correct server, and the findings that certify must report for it. */
import type { RequirementId } from '../../engine/requirements.ts';
import type { Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Fault {
  readonly name: string;
  /** Requirements that must fail (SHOULD: warn), each with the pattern that one of its messages must match. */
  readonly trips: Partial<Readonly<Record<RequirementId, RegExp>>>;
  /** Requirements that may fail as well because the same answers violate them. */
  readonly mayTrip?: readonly RequirementId[];
  /** Whether the fault must be found without a dataset and with primary's credentials alone. Default: true. */
  readonly bare?: boolean;
  readonly server?: ServerOptions;
  /** Changes the target that the kit is given: captured events, permission to provoke 429 … */
  readonly target?: (target: Target) => Target;
  /** The fault shows only after enough requests, so proofs also run the checks next to its own in each mode. */
  readonly needsNeighbours?: true;
  /** The fault shows only in a dataset of thousands of screenings. */
  readonly large?: true;
}

type Shared = Omit<Fault, 'name' | 'trips' | 'server'>;

/** Faults that share details; those of one call trip the same requirements with the same patterns, and have names. */
export const sharing =
  (shared: Shared) =>
  (trips: Fault['trips'], further: Shared = {}) =>
  (servers: Readonly<Record<string, ServerOptions>>): Fault[] =>
    Object.entries(servers).map(([name, server]) => ({ name, trips, server, ...shared, ...further }));

export const tripping = sharing({});

export const tripped = ({ trips }: Fault): RequirementId[] => Object.keys(trips) as RequirementId[];

// -- lists for `mayTrip`: requirements that the same wrong answers violate too -----------------------

/** For pages that lose, repeat, reorder or misplace screenings, or have a wrong next. */
export const PAGES = [
  '2.3-id-stable',
  '2.3-object-stable',
  '2.3-tenantId',
  '2.4-items',
  '2.4-links',
  '2.4-next',
  '4.2-success',
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-from_id',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-pageSize-bounds',
  '4.2-pageSize-default',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
  '4.2-r3-one-tenant',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-r6-next-from',
  '4.2-r6-next-from_id',
  '4.2-r6-next-to',
  '4.2-r6-next-pageSize',
  '4.2-r6-next-target',
  '4.2-r7-link',
  '4.2-r7-link-absent',
  '4.2-repeatable',
] as const;

/** For requests of the REST API that are refused in another way, or accepted. */
export const REFUSALS = [
  '4.2-from-required',
  '4.2-to-required',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
  '4.2-from_id',
  '5-missing',
  '5-scheme',
  '5-garbage',
  '5-tampered',
  '5-forged',
  '5-expired',
  '5-query-token',
  '5-valid-token',
  '5-forbidden',
  '5-forbidden-unknown',
  '7.2-body',
  '7.2-unauthenticated',
  '7.2-forbidden',
  '7.2-invalid_request',
  '7.2-invalid_time_range',
  '7.2-page_size_out_of_range',
  '7.2-not_found',
] as const;

/** For token requests that are refused in another way, or accepted. */
export const TOKEN_REFUSALS = [
  '7.1-body',
  '7.1-invalid_request-missing',
  '7.1-invalid_request-duplicated',
  '7.1-invalid_request-malformed',
  '7.1-invalid_request-empty',
  '7.1-invalid_client-secret',
  '7.1-invalid_client-id',
  '7.1-invalid_client-challenge',
  '7.1-unsupported_grant_type',
  '7.1-invalid_scope',
  '7.1-scope-subset',
  '7.1-unauthorized_client',
  '7.1-invalid_grant',
] as const;

/** For tokens with another lifetime, scope or tenant than the requested one. */
export const TOKEN_CLAIMS = [
  '2.1-expires_in',
  '2.1-expires_in-3600',
  '2.1-scope',
  '2.2-aud',
  '2.2-exp',
  '2.2-scope',
  '2.2-sub-client',
  '2.2-tenant_id',
  '5-one-tenant',
] as const;

export const pageFaults = sharing({ mayTrip: PAGES });
export const refusalFaults = sharing({ mayTrip: REFUSALS });
export const tokenRefusalFaults = sharing({ mayTrip: TOKEN_REFUSALS });
export const claimFaults = sharing({ mayTrip: TOKEN_CLAIMS });
/** Faults that cannot be found with primary's credentials alone. */
export const fullFaults = sharing({ bare: false });
