/** What a server of the zoo is, and what is said of it. */
export interface Judged {
  /** In words. */
  readonly found: string;
  /** Of the figure, as a share; absent where the truth is no figure. */
  readonly error?: number | undefined;
  /** Wrong is what was said with confidence; what is open, or says that it is not confirmed, is undecided. */
  readonly verdict: 'right' | 'undecided' | 'wrong';
  /** Seconds on the simulated clock. */
  readonly seconds?: number;
}

export interface ZooServer {
  readonly name: string;
  readonly truth: string;
  readonly judge: () => Judged | Promise<Judged>;
}

/** Draws the server of an index: the same seed draws the same. */
export type Draw = (index: number, random: () => number, seed: number) => ZooServer;
