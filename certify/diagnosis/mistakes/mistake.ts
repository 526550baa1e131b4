/** One kind of mistake: of an implementation, or in its environment. */
export interface Mistake {
  readonly name: string;
  /** What happens, and the effect on clients. */
  readonly what: string;
  /** Why it happens, and with which technologies. */
  readonly why: string;
  readonly fix: string;
  readonly right: string;
  /** The requirements that it breaks, the most typical first, separated by spaces. */
  readonly breaks: string;
  /** Features that make this kind more likely than others of the same requirement; see features.ts. */
  readonly when?: RegExp;
}
