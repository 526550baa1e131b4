/** Concurrency limits: one that follows the health of the target, and a fixed one for tasks. */
export type Access = 'shared' | 'exclusive' | 'unlimited';

/** Served requests before the limit rises by one; doubled each time the target fails at the raised limit. */
const SERVED_PER_STEP = 60;
const LONGEST_STEP = 2_000;
const SHARE_OF_TIMEOUT = 0.5;
const ANSWERS_AVERAGED = 20;

/** Halved when the target rejects or fails under load, raised step by step while it serves. */
export class ConcurrencyLimit {
  private inFlight = 0;
  private limit: number;
  private step = SERVED_PER_STEP;
  private servedSince = 0;
  private averageMs = 0;
  private readonly waiting: (() => void)[] = [];
  /** Whether exclusive access is held, and which requests are queued for it. */
  private isHeld = false;
  private readonly exclusive: (() => void)[] = [];

  /** `timeoutMs`: the longest time that an answer may take. */
  constructor(
    private readonly most: number,
    private readonly timeoutMs = Infinity,
  ) {
    this.limit = most;
  }

  async run<T>(task: () => Promise<T>, access: Access): Promise<T> {
    if (access === 'unlimited') return task();
    const alone = access === 'exclusive';
    const isBlocked = (): boolean =>
      this.isHeld ||
      (alone ? this.inFlight > 0 : this.exclusive.length > 0 || this.inFlight >= this.currentLimit);
    const queue = alone ? this.exclusive : this.waiting;
    while (isBlocked()) await new Promise<void>((resolve) => queue.push(resolve));
    this.isHeld = alone;
    this.inFlight++;
    try {
      return await task();
    } finally {
      this.inFlight--;
      if (alone) this.isHeld = false;
      this.wake();
    }
  }

  /** Halves the limit: some targets limit the requests in flight. */
  reduce(): void {
    const before = this.limit;
    this.limit = Math.max(1, Math.ceil(Math.min(this.limit, this.inFlight + 1) / 2));
    this.servedSince = 0;
    if (before < this.most) this.step = Math.min(2 * this.step, LONGEST_STEP);
  }

  served(durationMs: number): void {
    this.averageMs += (durationMs - this.averageMs) / ANSWERS_AVERAGED;
    if (this.limit >= this.most || ++this.servedSince < this.step) return;
    this.servedSince = 0;
    this.limit++;
    this.wake();
  }

  /** Some targets serve requests one by one: the queue that the kit causes must stay far below the timeout. */
  private get currentLimit(): number {
    const inTime = Math.floor((SHARE_OF_TIMEOUT * this.timeoutMs) / this.averageMs);
    return Math.max(1, Math.min(this.limit, inTime));
  }

  /** A task that finds no room queues again. Exclusive tasks come first. */
  private wake(): void {
    if (this.isHeld) return;
    if (this.exclusive.length > 0) {
      if (this.inFlight === 0) this.exclusive.shift()!();
      return;
    }
    for (const next of this.waiting.splice(0, Math.max(0, this.currentLimit - this.inFlight))) next();
  }
}

/** Runs tasks with a concurrency limit; results are in the order of the tasks. */
export async function mapConcurrently<T, R>(
  tasks: readonly T[],
  run: (task: T) => Promise<R>,
  limit = 6,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < tasks.length) {
      const index = next++;
      results[index] = await run(tasks[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, tasks.length) }, worker));
  return results;
}
