/** The progress of a long run, and whether it is worth going on. */
import { durationText, number } from '../../certify/render/results.ts';
import { failed } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';

/** Lines in all, at most. */
const LINES = 60;
const LEAST_INTERVAL_MS = 20_000;

/** Where as large a share failed for a whole interval, it ends. */
const HOPELESS = 0.9;
const HOPELESS_MS = 20_000;
const LEAST_ANSWERS = 20;
/** As a threshold of k6's that broke. */
export const HOPELESS_RULE = `failed rate<${HOPELESS} over ${HOPELESS_MS / 1000} s`;

/** Counts alone, so that a day takes no more memory than a minute. Its clock is that of the answers. */
export class Progress {
  readonly #config: Pick<LoadConfig, 'seconds' | 'p99Ms'>;
  readonly #tell: (line: string) => void;
  readonly #intervalMs: number;
  #toldMs = 0;
  #answers = 0;
  #late = 0;
  #failed = 0;
  #recent = { sinceMs: 0, answers: 0, failed: 0 };

  constructor(config: Pick<LoadConfig, 'seconds' | 'p99Ms'>, tell: (line: string) => void) {
    this.#config = config;
    this.#tell = tell;
    this.#intervalMs = Math.max(LEAST_INTERVAL_MS, (config.seconds * 1000) / LINES);
  }

  /** True where the run is hopeless. */
  note({ dueMs, latencyMs, status }: Pick<ArrivalRecord, 'dueMs' | 'latencyMs' | 'status'>): boolean {
    const atMs = dueMs + latencyMs;
    const { seconds, p99Ms } = this.#config;
    if (atMs >= this.#toldMs + this.#intervalMs) {
      this.#toldMs = atMs - (atMs % this.#intervalMs);
      this.#tell(
        `  ${durationText(atMs)} of ${durationText(seconds * 1000)}: ${number(this.#answers)} answers, ${number(this.#late)} late, ${number(this.#failed)} failed`,
      );
    }
    const recent = this.#recent;
    const isOver = atMs >= recent.sinceMs + HOPELESS_MS;
    const isHopeless =
      isOver && recent.answers >= LEAST_ANSWERS && recent.failed >= HOPELESS * recent.answers;
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
