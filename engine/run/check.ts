/** A check: one test of a spec or property, and what the scheduler must know about it. */
import type { RequirementId } from '../requirements.ts';
import type { Kit } from './kit.ts';

/** The precondition of a check: a token, a page of any window, or screenings. */
export type Precondition = 'token' | 'page' | 'data';

/**
 * The effect of a check on the target; it decides the order, and which checks run concurrently.
 *
 * - `reads`: it only reads, and runs concurrently with others that read.
 * - `reads late`: the same, after everything that does not disturb.
 * - `scratch`: it writes to the scratch tenant alone; it runs concurrently with readers, and with no other of its kind.
 * - `exclusive`: it runs while nothing else is in flight.
 * - `disturbs`: exclusive, and after everything that it would disturb.
 * - `guesses`: it sends wrong secrets, so it runs late: the target may lock the client out (RFC 6749, 2.3.1).
 * - `provokes`: it provokes the rate limit or an outage, so it runs after even those.
 */
export type Access = 'reads' | 'reads late' | 'scratch' | 'exclusive' | 'disturbs' | 'guesses' | 'provokes';

export interface Check {
  readonly title: string;
  /** The requirements that count as exercised once the check has run. */
  readonly ids: readonly RequirementId[];
  readonly needs: Precondition;
  readonly access: Access;
  /** It goes beyond what the requirements ask: while it is untested they still count as tested. */
  readonly isSupplement: boolean;
  /** Throws Untested where the target gives no means to exercise the requirements. */
  readonly run: (kit: Kit) => Promise<unknown>;
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

/** Checks that disturb others run after them. */
export const inOrder = (checks: readonly Check[]): readonly Check[] =>
  [...checks].sort((a, b) => ORDER[a.access] - ORDER[b.access]);

export const runsEarly = ({ access }: Check): boolean => ORDER[access] === 0;
