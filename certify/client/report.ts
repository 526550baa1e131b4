/** The shape of client.json: what a client under test did in each situation, and what is to be said of it. */
import type { Level } from '../../engine/requirements.ts';
import type { Status, Verdict } from '../report.ts';

/** One request of the client, for people and for the picture. Text only, secrets and tokens redacted. */
export interface TimelineEntry {
  /** Milliseconds since the client was started. */
  readonly atMs: number;
  /** How long the answer took; absent where none was given. */
  readonly tookMs?: number;
  readonly channel: 'token' | 'pages' | 'other';
  /** `GET /v1/…`, in the client's spelling. */
  readonly request: string;
  /** 0: no answer, or one that broke off. */
  readonly status: number;
  /** Which of the tokens issued it carried, counted from 1. */
  readonly token?: number;
}

export interface ClientFailure {
  /** `expected …, got …` */
  readonly message: string;
  readonly expected: string;
  readonly received: string;
  /** The requests that show it, as lines: when, what, and how it was answered. */
  readonly requests: readonly string[];
  /** Absent: the situation's own. A lesser finding of a MUST is a warning. */
  readonly level?: Level;
}

export interface SituationResult {
  readonly name: string;
  readonly section: string;
  readonly level: Level;
  /** The sentence that is judged. */
  readonly title: string;
  readonly status: Status;
  /** Why untested; what the kit tripped over; what could not be seen although it passed. */
  readonly reason?: string;
  readonly lookAt: readonly string[];
  readonly failures: readonly ClientFailure[];
  readonly durationMs: number;
  /** Absent for sentences that are judged over all situations. */
  readonly timeline?: readonly TimelineEntry[];
}

export interface ClientReport {
  readonly verdict: Verdict;
  /** One sentence: what the verdict rests on. */
  readonly summary: string;
  readonly kit: { readonly name: string; readonly version: string };
  /** The command, or how it was started. */
  readonly client: string;
  readonly startedAt: string;
  readonly durationMs: number;
  /** The situations that the run was limited to (`--only`); absent for a whole run. */
  readonly selection?: readonly string[];
  readonly situations: readonly SituationResult[];
}
