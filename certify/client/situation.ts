/** A situation: a server with one behaviour, and the rules for a client that meets it. */
import type { Clock } from '../../engine/clock.ts';
import type { Level } from '../../engine/requirements.ts';
import type { Screening } from '../../engine/data/dataset.ts';
import type { Ended, Printed } from './client.ts';
import { line, pageRequests, type Recorded } from './record.ts';
import type { ClientFailure, Rule } from './report.ts';
import type { Given, StageOptions } from './stage.ts';

export interface Play {
  readonly given: Given;
  readonly requests: readonly Recorded[];
  /** The number of requests without TLS to an https address. */
  readonly plainRequests: number;
  readonly tokens: readonly string[];
  readonly ended: Ended;
  readonly printed: Printed;
  readonly stopped?: 'silent' | 'storm' | 'interrupted';
  readonly expected: readonly Screening[];
  /** Everything that the server or the events hold. */
  readonly all: readonly Screening[];
}

export interface Situation extends Rule {
  /** If untested, it does not make the verdict incomplete. */
  readonly optional?: true;
  /** Creates a server, which waits on this clock. */
  readonly stage: (clock: Clock) => StageOptions;
  readonly events?: readonly string[];
  /** Screenings that only occur as events. */
  readonly onlyEvents?: readonly Screening[];
  /** Why a client may have sent no request at all. */
  readonly unspoken?: string;
  /** True if the client reached the critical point of the situation, otherwise why not. */
  readonly met?: (play: Play) => true | string;
  /** The situation that must be tested for a pass to mean something. */
  readonly needs?: string;
  /** The window cannot be retrieved, so that exit status 0 is wrong. */
  readonly impossible?: true;
  /** Whether giving up with an error breaks the rule (default), is a warning, or is allowed. */
  readonly givingUp?: 'breaks' | 'warns' | 'allowed';
  readonly judge?: (play: Play) => readonly ClientFailure[];
}

/** A situation as written in the tables; the level defaults to MUST. */
export type SituationRow = Omit<Situation, 'name' | 'section' | 'level'> &
  Partial<Pick<Situation, 'section' | 'level'>>;

/** Situations by name; `section` is that of rows without their own. */
export const situationsOf = (
  section: string,
  rows: Readonly<Record<string, SituationRow>>,
): readonly Situation[] =>
  Object.entries(rows).map(([name, row]) => ({ name, section, level: 'MUST', ...row }));

/** A finding with the wording of other reports; `requests` show it. */
export const finding = (
  expected: string,
  received: string,
  requests: readonly Recorded[] = [],
  level?: Level,
): ClientFailure => ({
  message: `expected ${expected}, got ${received}`,
  ...{ expected, received, requests: requests.map(line), level },
});

export const unless = (isRight: boolean, ...args: Parameters<typeof finding>): readonly ClientFailure[] =>
  isRight ? [] : [finding(...args)];

/** A finding that these requests show, if there are any. */
export const none = (
  wrong: readonly Recorded[],
  expected: string,
  received: string,
  level?: Level,
): readonly ClientFailure[] => unless(wrong.length === 0, expected, received, wrong.slice(0, 5), level);

/** For `met`: whether there was such a request for a page. */
export const reached =
  (isPoint: (request: Recorded) => boolean, point: string) =>
  ({ requests }: Play): true | string =>
    pageRequests(requests).some(isPoint) || `the client ended before ${point}`;

export const answered = (status: number) =>
  reached((request) => request.status === status, `it was answered ${status || 'with a broken connection'}`);
