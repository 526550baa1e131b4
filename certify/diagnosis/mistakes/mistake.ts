/** One kind of mistake: of an implementation, or in its environment. */
export interface Mistake {
  /** What happens and its effect on clients; then why it happens, and with which technologies. */
  readonly why: string;
  readonly fix: string;
  readonly right: string;
  /** The requirements that it breaks, the most typical first, separated by spaces. */
  readonly breaks: string;
  /** Words of a failure that make this kind more likely than others of the same requirement; see kindsOf. */
  readonly when?: RegExp;
}

export type Mistakes = Readonly<Record<string, Mistake>>;
