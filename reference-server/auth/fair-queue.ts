/** Runs tasks one at a time; lanes with waiting tasks take turns. */
export class FairQueue {
  readonly #lanes = new Map<string, (() => Promise<void>)[]>();
  readonly #perLane: number;
  #busy = false;

  /** `perLane`: the number of tasks that may wait in one lane. */
  constructor(perLane: number) {
    this.#perLane = perLane;
  }

  /** Returns undefined if the lane is full. */
  add<Result>(lane: string, work: () => Promise<Result>): Promise<Result> | undefined {
    const waiting = this.#lanes.get(lane) ?? [];
    if (waiting.length >= this.#perLane) return undefined;
    const result = new Promise<Result>((resolve, reject) => {
      waiting.push(() => work().then(resolve, reject));
    });
    this.#lanes.set(lane, waiting);
    if (!this.#busy) void this.#run();
    return result;
  }

  async #run(): Promise<void> {
    this.#busy = true;
    for (let next = this.#next(); next; next = this.#next()) await next();
    this.#busy = false;
  }

  #next(): (() => Promise<void>) | undefined {
    const [first] = this.#lanes;
    if (!first) return undefined;
    const [lane, waiting] = first;
    const work = waiting.shift();
    // Moves the lane to the end of the order.
    this.#lanes.delete(lane);
    if (waiting.length > 0) this.#lanes.set(lane, waiting);
    return work;
  }
}
