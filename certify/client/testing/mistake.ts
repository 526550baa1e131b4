/** A client with one mistake, the situation that shows it, and what has to be said there; its name is what it does. */
import type { Habits } from './small-client.ts';

export interface Mistake {
  readonly habits: Habits;
  /** Absent: fail. */
  readonly status?: 'warn';
  /** Where it shows, with what is said there. */
  readonly shows: Readonly<Record<string, RegExp>>;
  /** Where it shows as well, because the same mistake meets it. */
  readonly also?: readonly string[];
  /** Played to the situations where it shows alone: elsewhere a busy machine would show it as well. */
  readonly alone?: true;
}
