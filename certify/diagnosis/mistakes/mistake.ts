/** One kind of mistake: of an implementation, or in its environment. */
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
  /** The requirements that it breaks, the most typical first. */
  readonly breaks: string;
  /** What the failures of such a requirement show where it is rather this kind than another: see features.ts. */
  readonly when?: RegExp;
}
