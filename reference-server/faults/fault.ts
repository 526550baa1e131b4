/** A fault: one mistake in an otherwise correct server, and the findings that certify must report for it. */
import { REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import type { Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../run/start.ts';

/** A server that is not the usual one, and what it changes in the target that the kit is given. */
export interface Behaviour {
  readonly name: string;
  readonly server?: ServerOptions;
  /** Captured events, permission to provoke 429 … */
  readonly target?: (target: Target) => Target;
}

export interface Fault extends Behaviour {
  /** Requirements that must fail (SHOULD: warn), each with the pattern that one of its messages must match. */
  readonly trips: Partial<Readonly<Record<RequirementId, RegExp>>>;
  /** Requirements that may fail as well because the same answers violate them. */
  readonly mayTrip?: readonly RequirementId[];
  /** Whether the fault must be found without a dataset and with primary's credentials alone. Default: true. */
  readonly bare?: boolean;
  /** The fault shows only after enough requests, so proofs also run the checks next to its own in each mode. */
  readonly needsNeighbours?: true;
  /** The fault shows only in a larger dataset than that of most tests. */
  readonly large?: true;
}

type Details = Omit<Fault, 'name' | 'trips'>;

/** A row of a table of behaviours by name: a server alone, or with details. */
export const detailed = <D extends Omit<Behaviour, 'name'>>(row: ServerOptions | D): D | Pick<D, 'server'> =>
  'server' in row || 'target' in row ? (row as D) : { server: row as ServerOptions };

/** Returns what replaces the text of a captured event. */
export type EventChange = (line: string, index: number, all: readonly string[]) => string | readonly string[];
/** Changes the captured events. */
export const withEvents =
  (change: EventChange) =>
  (target: Target): Target => ({ ...target, events: target.events?.flatMap(change) });
/** The dataset holds every screening of the tenant; events need the window. */
export const withoutWindow = ({ window: _, events: __, ...target }: Target): Target => target;
/** Lets the kit exceed the rate limit. */
export const probing =
  (maxRequests: number) =>
  (target: Target): Target => ({ ...target, rateLimit: { maxRequests, maxSeconds: 20 } });

/** Faults that cannot be found with primary's credentials alone. */
const FULL = { bare: false } as const;
export const full = (server: ServerOptions): Details => ({ server, ...FULL });
/** Faults that must be found without datasets. */
export const withoutDatasets = (server: ServerOptions): Details => ({
  server,
  target: ({ dataset: _, secondDataset: __, ...target }) => target,
});

/**
 * The builders of a theme's faults, which share `mayTrip`: `fails(TRIPS)({ NAME: SERVER, … })`. Faults of one call trip
 * the same requirements with the same patterns. `failsFull` needs a complete target, `failsLater` enough requests.
 */
export function theme(mayTrip: readonly RequirementId[] = []) {
  const builder =
    (shared: Details) =>
    (trips: Fault['trips']) =>
    (rows: Readonly<Record<string, ServerOptions | Details>>): Fault[] =>
      Object.entries(rows).map(([name, row]) => ({
        ...{ name, trips, mayTrip, ...shared },
        ...detailed(row),
      }));
  return { fails: builder({}), failsFull: builder(FULL), failsLater: builder({ needsNeighbours: true }) };
}

export const tripped = ({ trips }: Fault): RequirementId[] => Object.keys(trips) as RequirementId[];

// -- lists for `mayTrip`: requirements that the same wrong answers violate too -----------------------

const idsOf = (...sections: readonly string[]): RequirementId[] =>
  REQUIREMENTS.filter(({ section }) => sections.includes(section)).map(({ id }) => id);

/** For pages that lose, repeat, reorder or misplace screenings, or have a wrong next. */
export const PAGES = idsOf('2.3', '2.4', '4.2');
/** For requests of the REST API that are refused in another way, or accepted. */
export const REFUSALS = [
  ...idsOf('5', '7.2'),
  '4.2-success',
  '4.2-from-required',
  '4.2-to-required',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
  '4.2-from_id',
] as const;
/** For token requests that are refused in another way, or accepted. */
export const TOKEN_REFUSALS = idsOf('7.1');
/** For tokens with another lifetime, scope or tenant than the requested one. */
export const TOKEN_CLAIMS = [...idsOf('2.1', '2.2'), '5-one-tenant'] as const;
