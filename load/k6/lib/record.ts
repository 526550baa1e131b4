/** What a script tells the kit: one line of JSON each on the console, of these shapes. Runs in k6 and in Node alike. */
import type { Cursor, Finding, RatePolicy } from './judge.ts';

/** Which screenings a page held: those behind `after`, or from `from` on. */
export interface Stretch {
  readonly from: string;
  readonly after?: Cursor | undefined;
  readonly first?: Cursor | undefined;
  readonly last?: Cursor | undefined;
  readonly items: number;
  /** No other page follows. */
  readonly final: boolean;
}

/** A request of open arrivals. */
export interface ArrivalRecord {
  readonly kind: 'arrival';
  /** When it was due, since the start; latency counts from there, service from when it was sent. */
  readonly dueMs: number;
  readonly latencyMs: number;
  readonly serviceMs: number;
  /** 0 where no answer came; errorCode is k6's own then. */
  readonly status: number;
  readonly errorCode?: number;
  /** How late a free VU woke: the generator's own lateness. */
  readonly schedulerLagMs: number;
  /** Which of the clients asked. */
  readonly client: number;
  /** Of a poll, which may need several. */
  readonly pages?: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly policy?: RatePolicy | undefined;
  /** Of a page, where the target is made to fail meanwhile. */
  readonly stretch?: Stretch | undefined;
}

/** A page of a walk. */
export interface PageRecord {
  readonly kind: 'page';
  readonly walk: number;
  readonly depth: number;
  readonly items: number;
  readonly ms: number;
  /** The first page of a window that begins where this page does, read right before or after it. */
  readonly firstMs?: number | undefined;
  readonly status: number;
}

/** An answer to a question of the limiter's probe. */
export interface AnswerRecord {
  readonly kind: 'answer';
  /** Which of the clients asked; the first where it is not said. */
  readonly client?: number;
  readonly sentMs: number;
  readonly rttMs: number;
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly policy?: RatePolicy | undefined;
}

/** How the limiter's probe ended before its time: by which of its limits, or by an answer that is none. */
export interface EndRecord {
  readonly kind: 'end';
  readonly cutBy?: 'maxRequests' | 'maxSeconds';
  readonly status?: number;
}

export interface FindingRecord extends Finding {
  readonly kind: 'finding';
}

export type LoadRecord = ArrivalRecord | PageRecord | AnswerRecord | EndRecord | FindingRecord;

export const write = (record: LoadRecord): void => console.log(JSON.stringify(record));

/** The records among lines; whatever else was written is left out. */
export const readRecords = (lines: readonly string[]): LoadRecord[] =>
  lines.flatMap((line) => (line.startsWith('{"kind":') ? [JSON.parse(line) as LoadRecord] : []));
