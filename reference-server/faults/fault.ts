/** A fault: one mistake put into the clean server, and what certify must say of it. */
import type { RequirementId } from '../../engine/requirements.ts';
import type { Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../run/start.ts';

export interface Fault {
  /** The fault in a few words. */
  readonly name: string;
  /** Requirements that must fail (SHOULD: warn), each with the pattern that one of its messages must match. */
  readonly trips: Partial<Readonly<Record<RequirementId, RegExp>>>;
  /** Requirements that may fail as well, because the same answers break them. */
  readonly mayTrip?: readonly RequirementId[];
  /** Whether it shows without a dataset and with primary's credentials alone. Default: true. */
  readonly bare?: boolean;
  readonly server?: ServerOptions;
  /** Changes what the kit is told of the target: captured events, leave to provoke 429 … */
  readonly target?: (target: Target) => Target;
  /** Shows where enough is asked: in each mode its neighbours are looked at too. */
  readonly needsNeighbours?: true;
  /** It shows in a dataset of thousands only. */
  readonly large?: true;
}

/** Faults that break the same requirements in the same words: by its name, the server of each. */
export const tripping =
  (trips: Fault['trips'], shared: Omit<Fault, 'name' | 'trips' | 'server'> = {}) =>
  (servers: Readonly<Record<string, ServerOptions>>): Fault[] =>
    Object.entries(servers).map(([name, server]) => ({ name, trips, server, ...shared }));

export const tripped = ({ trips }: Fault): RequirementId[] => Object.keys(trips) as RequirementId[];
