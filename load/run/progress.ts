/** Prints the progress of a long run, and detects a hopeless one. */
import { durationText, number } from '../../certify/render/results.ts';
import { failed } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';

/** Maximum number of lines. */
const LINES = 60;
const MIN_INTERVAL_MS = 20_000;

/** A run is hopeless if this share of requests fails during a whole interval. */
const HOPELESS_SHARE = 0.9;
const HOPELESS_MS = 20_000;
const MIN_ANSWERS = 20;
/** Reported like a broken k6 threshold. */
export const HOPELESS_RULE = `failed rate<${HOPELESS_SHARE} over ${HOPELESS_MS / 1000} s`;

/** Keeps only counts, so that memory does not grow with the run. Its clock is that of the answers. */
export class Progress {
  readonly #config: Pick<LoadConfig, 'seconds' | 'p99Ms'>;
  readonly #tell: (line: string) => void;
  readonly #intervalMs: number;
  #reportedMs = 0;
  #answers = 0;
  #late = 0;
  #failed = 0;
  #recent = { sinceMs: 0, answers: 0, failed: 0 };

  constructor(config: Pick<LoadConfig, 'seconds' | 'p99Ms'>, tell: (line: string) => void) {
    this.#config = config;
    this.#tell = tell;
    this.#intervalMs = Math.max(MIN_INTERVAL_MS, (config.seconds * 1000) / LINES);
  }

  /** Returns true if the run is hopeless. */
  note({ dueMs, latencyMs, status }: Pick<ArrivalRecord, 'dueMs' | 'latencyMs' | 'status'>): boolean {
    const atMs = dueMs + latencyMs;
    const { seconds, p99Ms } = this.#config;
    if (atMs >= this.#reportedMs + this.#intervalMs) {
      this.#reportedMs = atMs - (atMs % this.#intervalMs);
      this.#tell(
        `  ${durationText(atMs)} of ${durationText(seconds * 1000)}: ${number(this.#answers)} answers, ${number(this.#late)} late, ${number(this.#failed)} failed`,
      );
    }
    const recent = this.#recent;
    const isOver = atMs >= recent.sinceMs + HOPELESS_MS;
    const isHopeless =
      isOver && recent.answers >= MIN_ANSWERS && recent.failed >= HOPELESS_SHARE * recent.answers;
    if (isOver) this.#recent = { sinceMs: atMs, answers: 0, failed: 0 };
    const isFailed = failed(status);
    this.#answers += 1;
    this.#recent.answers += 1;
    if (isFailed) {
      this.#failed += 1;
      this.#recent.failed += 1;
    } else if (latencyMs >= p99Ms) this.#late += 1;
    return isHopeless;
  }
}
