/** A client with one mistake, the situation that shows it, and what has to be said there. */
import type { Habits } from './small-client.ts';

export interface Mistake {
  /** What the client does. */
  readonly name: string;
  readonly habits: Habits;
  readonly status: 'fail' | 'warn';
  /** Where it shows, with what is said there. */
  readonly shows: Readonly<Record<string, RegExp>>;
  /** Where it shows as well, because the same mistake meets it. */
  readonly also?: readonly string[];
  /** Played to the situations where it shows alone: elsewhere a busy machine would show it as well. */
  readonly alone?: true;
}
