/** Concurrency limits: one that follows the health of the target, and a fixed one for tasks. */
export type Access = 'shared' | 'exclusive' | 'unlimited';

/** Served requests before the limit rises by one; doubled each time the target fails at the raised limit. */
const SERVED_PER_STEP = 60;
const LONGEST_STEP = 2_000;
/** The part of the time from the shortest answer until the timeout that requests may wait for one another. */
const SHARE_OF_TIMEOUT = 0.25;
const LEAST_AVERAGED = 5;
/** Two requests that wait for each other take two thirds of the timeout at most. */
const SHARE_OF_ONE = 1 / 3;

/** Halved when the target rejects or fails under load, raised step by step while it serves. */
export class ConcurrencyLimit {
  private inFlight = 0;
  private limit: number;
  private step = SERVED_PER_STEP;
  private servedSince = 0;
  /** The limit that keeps answers in time; undefined before the first one. */
  private inTime: number | undefined;
  private shortestMs = Infinity;
  /** Since the limit changed. */
  private readonly answers = { count: 0, totalMs: 0 };
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
    this.keepInTime(durationMs);
    if (this.limit >= this.most || ++this.servedSince < this.step) return;
    this.servedSince = 0;
    this.limit++;
    this.wake();
  }

  /**
   * Some targets serve requests one by one: the queue that the kit causes must stay far below the timeout. The first
   * answer shows how many can wait for one another in time. Later the limit rises while the average is near the
   * shortest answer, which a slow network delays too, and falls when requests wait longer.
   */
  private keepInTime(durationMs: number): void {
    this.shortestMs = Math.min(this.shortestMs, durationMs);
    const roomMs = SHARE_OF_TIMEOUT * (this.timeoutMs - this.shortestMs);
    const clamp = (limit: number): number => Math.max(1, Math.min(this.most, Math.floor(limit)));
    const inTime = (this.inTime ??= clamp(roomMs / durationMs));
    const { answers } = this;
    answers.count++;
    answers.totalMs += durationMs;
    if (answers.count < Math.max(LEAST_AVERAGED, inTime)) return;
    const averageMs = answers.totalMs / answers.count;
    const waitedMs = averageMs - this.shortestMs;
    const mayRise = inTime > 1 || averageMs <= SHARE_OF_ONE * this.timeoutMs;
    if (waitedMs > roomMs) this.inTime = clamp((inTime * roomMs) / waitedMs);
    else if (mayRise && this.inFlight >= inTime) this.inTime = clamp(inTime + 1);
    Object.assign(answers, { count: 0, totalMs: 0 });
  }

  private get currentLimit(): number {
    return Math.min(this.limit, this.inTime ?? this.most);
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
