/** Records that a script writes for the kit: one line of JSON each on the console. Runs in k6 and in Node. */
import type { DeepPage } from '../../estimate/depth.ts';
import type { PagesRead } from '../../estimate/other-limits.ts';
import type { Probed } from '../../estimate/limiter-probe.ts';
import type { RatePolicy, Sample } from '../../estimate/step.ts';
import type { Finding } from './judge.ts';

export interface ArrivalRecord extends Sample {
  readonly kind: 'arrival';
  readonly errorCode?: number;
  /** How late a free VU started: the generator's own delay. */
  readonly schedulerLagMs: number;
  /** Pages of a poll, which may be several. */
  readonly pages?: number;
}

export type Answered = Omit<ArrivalRecord, 'kind' | 'dueMs' | 'schedulerLagMs'>;

export interface PageRecord extends DeepPage {
  readonly kind: 'page';
  readonly walk: number;
  /** The instant at which it begins, in a traversal. */
  readonly from?: string;
  readonly items: number;
  readonly status: number;
}

/** A complete answer, for the kit to judge. */
export interface SampleRecord {
  readonly kind: 'sample';
  readonly url: string;
  /** Whether the URL was a next. */
  readonly followed: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type LoadRecord =
  | (SampleRecord | ArrivalRecord | PageRecord)
  // The result of the limiter's probe with the declared policies, or the unexpected status that ended it.
  | { readonly kind: 'probe'; probed?: Probed; policies?: readonly RatePolicy[]; status?: number }
  | { readonly kind: 'pages'; readonly reads: readonly PagesRead[] }
  | (Finding & { readonly kind: 'finding' });

/** Replaces tokens of the run in recorded answers. */
export const TOKEN = 'a-token-of-this-run-which-no-answer-may-repeat';

export const write = (record: LoadRecord, redact = (text: string): string => text): void =>
  writeLine(redact(JSON.stringify(record)));

let log: typeof console.log | undefined;
/** k6 makes a function on each access to `console.log`: it is kept, but not from the init stage, which has another. */
const writeLine = (line: string): void => (log ??= console.log)(line);

/** To hundredths, without the cost of a call of Math.round. */
const rounded = (ms: number): number => ((ms * 100 + 0.5) | 0) / 100;

/** Arrivals of a VU that are written together, as each write costs as much as the rest of a record. */
const TOGETHER_MS = 1000;
const { now } = Date;
let arrivals: string[] = [];
let writtenAtMs = 0;

/**
 * Writes the most frequent record, mostly without JSON.stringify, which costs ten times as much. `isLast`: the VU may
 * have no other arrival, so that this one is written without delay.
 */
export function writeArrival(sent: Answered, due: number, schedulerLagMs: number, isLast: boolean): void {
  const { status, errorCode = 0, retryAfterSeconds, policy, pages } = sent;
  const latencyMs = rounded(sent.latencyMs);
  const serviceMs = rounded(sent.serviceMs);
  const times = `"dueMs":${due},"latencyMs":${latencyMs},"serviceMs":${serviceMs},"schedulerLagMs":${schedulerLagMs}`;
  const more =
    errorCode > 0 || policy || retryAfterSeconds !== undefined || pages !== undefined
      ? `,${JSON.stringify({ errorCode, retryAfterSeconds, policy, pages }).slice(1, -1)}`
      : '';
  arrivals.push(`{"kind":"arrival",${times},"status":${status}${more}}`);
  const nowMs = now();
  if (!isLast && nowMs < writtenAtMs + TOGETHER_MS) return;
  writeLine(arrivals.join('\n'));
  [arrivals, writtenAtMs] = [[], nowMs];
}

/** Undefined for anything but an object in JSON. */
export function parseJson<T extends object>(text: string): T | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

/** Returns the record of a line; undefined for other output, and for a last line that is incomplete. */
export const readRecord = (line: string): LoadRecord | undefined =>
  line.startsWith('{"kind":') ? parseJson(line) : undefined;
