/** A fault: one mistake in an otherwise correct server, and the findings that certify must report for it. */
import type { RequirementId } from '../../engine/requirements.ts';
import type { Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Fault {
  /** Describes the fault in a few words; unique. */
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

/** Faults that trip the same requirements with the same patterns; `servers` maps a fault's name to its server. */
export const tripping =
  (trips: Fault['trips'], shared: Omit<Fault, 'name' | 'trips' | 'server'> = {}) =>
  (servers: Readonly<Record<string, ServerOptions>>): Fault[] =>
    Object.entries(servers).map(([name, server]) => ({ name, trips, server, ...shared }));

export const tripped = ({ trips }: Fault): RequirementId[] => Object.keys(trips) as RequirementId[];
