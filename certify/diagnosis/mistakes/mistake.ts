/** One kind of mistake: of an implementation, or in its environment. */
export interface Mistake {
  /** The mistake in a few words. */
  readonly name: string;
  /** Description, with its effect on clients. */
  readonly what: string;
  /** Why it happens, and in which stacks. */
  readonly why: string;
  /** The remedy. */
  readonly fix: string;
  /** A query or a snippet of the right way. */
  readonly right: string;
  /** The requirements that it breaks, the most typical first. */
  readonly breaks: string;
  /** Features that make this kind more likely than the others of the same requirement: see features.ts. */
  readonly when?: RegExp;
}
