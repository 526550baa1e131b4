/** A situation: a server that behaves in one way, and what is to be said of a client that met it. */
import type { Clock } from '../../engine/clock.ts';
import type { Level } from '../../engine/requirements.ts';
import type { Screening } from '../../engine/data/screening.ts';
import type { Ended } from './client.ts';
import type { Printed } from './printed.ts';
import { pageRequests, type Recorded } from './record.ts';
import type { ClientFailure } from './report.ts';
import type { Given, StageOptions } from './stage.ts';

/** One run of a client against one server. */
export interface Play {
  readonly given: Given;
  readonly requests: readonly Recorded[];
  /** The tokens that were handed out. */
  readonly tokens: readonly string[];
  readonly ended: Ended;
  readonly printed: Printed;
  /** Why the client was stopped before it ended by itself. */
  readonly stopped?: 'silent' | 'storm' | 'interrupted';
  /** The screenings of the window, in order. */
  readonly expected: readonly Screening[];
  /** Everything that the server or the events hold. */
  readonly all: readonly Screening[];
}

/** As it is written: where no level stands, it is a MUST. */
export type SituationRow = Omit<Situation, 'level'> & Partial<Pick<Situation, 'level'>>;

export interface Situation {
  readonly name: string;
  /** Where the sentence stands. */
  readonly section: string;
  readonly level: Level;
  /** One sentence that says what holds. */
  readonly title: string;
  /** Where an implementer should look when it does not, most likely cause first. */
  readonly lookAt: readonly string[];
  /** A client is whole without showing it: untested, it does not make a verdict incomplete. */
  readonly optional?: true;
  /** A fresh server, which waits on this clock. */
  readonly stage: (clock: Clock) => StageOptions;
  /** Lines of the event file that the client is given. */
  readonly events?: readonly string[];
  /** Screenings that only the events hold. */
  readonly onlyEvents?: readonly Screening[];
  /** Why a client may have sent no request at all. */
  readonly unspoken?: string;
  /** Whether the client came to the place that the situation is about; text: why it did not. */
  readonly met?: (play: Play) => true | string;
  /** Passing means something only where that one was met. */
  readonly needs?: string;
  /** The window can't be had: an exit status of 0 is a lie. */
  readonly impossible?: true;
  /** Giving up, and saying so, breaks the sentence (the default), is a warning, or is as good as going on. */
  readonly givingUp?: 'breaks' | 'warns' | 'allowed';
  /** What is to be said of it in addition to the collection. */
  readonly judge?: (play: Play) => readonly ClientFailure[];
}

/** A finding in the words of the other report. */
export const finding = (
  expected: string,
  received: string,
  requests: readonly string[] = [],
  level?: Level,
): ClientFailure => ({
  message: `expected ${expected}, got ${received}`,
  expected,
  received,
  requests,
  ...(level === undefined ? {} : { level }),
});

/** The client was answered so at least once on the screenings path. */
export const answered =
  (status: number) =>
  ({ requests }: Play): true | string =>
    pageRequests(requests).some((request) => request.status === status) ||
    `the client ended before it was answered ${status || 'with a broken connection'}`;
