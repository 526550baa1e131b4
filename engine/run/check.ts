/** A check: one test of a spec or property, and what the scheduler must know about it. */
import type { RequirementId } from '../requirements.ts';
import type { Kit } from './kit.ts';

export type Precondition = 'token' | 'page' | 'data';

/**
 * The effect of a check on the target; it decides the order, and which checks run concurrently.
 *
 * - `reads`: only reads; runs concurrently with other readers.
 * - `reads late`: the same, after `reads`, `scratch` and `exclusive`.
 * - `scratch`: writes to the scratch tenant only; runs concurrently with readers, but not with other writers.
 * - `exclusive`: runs while nothing else is in flight.
 * - `disturbs`: exclusive, and after everything that it would disturb.
 * - `guesses`: sends wrong secrets, so it runs late: the target may lock the client (RFC 6749, 2.3.1).
 * - `provokes`: provokes the rate limit or an outage, so it runs last.
 */
export type Access = 'reads' | 'reads late' | 'scratch' | 'exclusive' | 'disturbs' | 'guesses' | 'provokes';

export interface Check {
  readonly title: string;
  /** The requirements that count as tested once the check has run. */
  readonly ids: readonly RequirementId[];
  readonly needs: Precondition;
  readonly access: Access;
  /** Goes beyond the requirements: if it is untested, they still count as tested. */
  readonly isSupplement: boolean;
  /** Throws Untested if the target gives no means to test the requirements. */
  readonly run: (kit: Kit) => Promise<unknown>;
}

/** What a test may know of itself: its title, and its first requirement. */
export interface CheckName {
  readonly title: string;
  readonly id: RequirementId;
}

const ORDER: Readonly<Record<Access, number>> = {
  reads: 0,
  scratch: 0,
  exclusive: 0,
  'reads late': 1,
  disturbs: 1,
  guesses: 2,
  provokes: 3,
};

export const inOrder = (checks: readonly Check[]): readonly Check[] =>
  [...checks].sort((a, b) => ORDER[a.access] - ORDER[b.access]);

export const runsEarly = ({ access }: Check): boolean => ORDER[access] === 0;
