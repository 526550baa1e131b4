/** The schema of client.json: what a client did in each situation, and the findings. */
import type { Level } from '../../engine/requirements.ts';
import type { Status, Verdict } from '../report.ts';

/** One request of the client. Text only, with secrets and tokens redacted. */
export interface TimelineEntry {
  /** Milliseconds since the client was started. */
  readonly atMs: number;
  /** The duration of the answer; absent if there was none. */
  readonly tookMs?: number;
  readonly channel: 'token' | 'pages' | 'other';
  /** `GET /v1/…`, as the client spelled it. */
  readonly request: string;
  /** 0: no answer, or an aborted one. */
  readonly status: number;
  /** The number of the issued token that it carried, counted from 1. */
  readonly token?: number;
}

export interface ClientFailure {
  /** `expected …, got …` */
  readonly message: string;
  readonly expected: string;
  readonly received: string;
  /** The requests that show the failure, one line each. */
  readonly requests: readonly string[];
  /** Absent: the level of the situation. A SHOULD in a MUST situation is a warning. */
  readonly level?: Level;
}

export interface SituationResult {
  readonly name: string;
  readonly section: string;
  readonly level: Level;
  /** The rule that is judged. */
  readonly title: string;
  readonly status: Status;
  /** Why it is untested, the error of the kit, or what could not be checked although it passed. */
  readonly reason?: string;
  readonly lookAt: readonly string[];
  readonly failures: readonly ClientFailure[];
  readonly durationMs: number;
  /** Absent for rules that are judged over all situations. */
  readonly timeline?: readonly TimelineEntry[];
}

export interface ClientReport {
  readonly verdict: Verdict;
  /** One sentence on what the verdict is based on. */
  readonly summary: string;
  readonly kit: { readonly name: string; readonly version: string };
  /** The command, or how the client was started. */
  readonly client: string;
  readonly startedAt: string;
  readonly durationMs: number;
  /** The situations selected by `--only`; absent for a whole run. */
  readonly selection?: readonly string[];
  readonly situations: readonly SituationResult[];
}
