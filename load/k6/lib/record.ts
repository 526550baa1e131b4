/** Records that a script writes for the kit: a line of JSON each on the console. Runs in k6 and in Node alike. */
import type { Finding, RatePolicy } from './judge.ts';

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
}

/** A page of a walk. */
interface PageRecord {
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
interface AnswerRecord {
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
interface EndRecord {
  readonly kind: 'end';
  readonly cutBy?: 'maxRequests' | 'maxSeconds';
  readonly status?: number;
}

interface FindingRecord extends Finding {
  readonly kind: 'finding';
}

/** An answer as it came, for the kit to judge. */
export interface SampleRecord {
  readonly kind: 'sample';
  readonly url: string;
  /** A next as it was given. */
  readonly followed: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type LoadRecord = SampleRecord | ArrivalRecord | PageRecord | AnswerRecord | EndRecord | FindingRecord;

/** Stands for a token of the run, wherever a target repeats one. */
export const TOKEN = 'a-token-of-this-run-which-no-answer-may-repeat';

export const write = (record: LoadRecord, redact = (text: string): string => text): void =>
  console.log(redact(JSON.stringify(record)));

/** The line of a request: put together by hand, which costs a tenth. */
export const writeArrival = (record: ArrivalRecord): void => {
  const { dueMs, latencyMs, serviceMs, schedulerLagMs, status, client } = record;
  const more = record.errorCode || record.policy || record.retryAfterSeconds !== undefined;
  if (more) write(record);
  else
    console.log(
      `{"kind":"arrival","dueMs":${dueMs},"latencyMs":${latencyMs},"serviceMs":${serviceMs},"schedulerLagMs":${schedulerLagMs},"status":${status},"client":${client}}`,
    );
};

/** The record of a line; undefined for whatever else was written. */
export function readRecord(line: string): LoadRecord | undefined {
  if (!line.startsWith('{"kind":')) return undefined;
  try {
    return JSON.parse(line) as LoadRecord;
  } catch {
    // Cut off where a runner was ended.
    return undefined;
  }
}

export const readRecords = (lines: readonly string[]): LoadRecord[] =>
  lines.flatMap((line) => readRecord(line) ?? []);
