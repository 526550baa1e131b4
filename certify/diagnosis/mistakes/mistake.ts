/** One kind of mistake, as told to those who have to mend it. */
export interface Mistake {
  /** What is wrong, in a few words. */
  readonly name: string;
  /** What it is, and what a client sees of it. */
  readonly what: string;
  /** Why it happens, and in which stacks. */
  readonly why: string;
  /** What to do, in words. */
  readonly fix: string;
  /** A query or a snippet of the right way. */
  readonly right: string;
  /** The faults of the reference server that are of this kind, by name. */
  readonly faults: readonly string[];
}
