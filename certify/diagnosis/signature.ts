/** What is known of one mistake. */
export interface Signature {
  /** The mistake, in words. */
  readonly name: string;
  /** The requirements that it breaks itself, each with what the failure says: a regular expression. */
  readonly own: Readonly<Record<string, string>>;
  /** What it may break besides, because the same answers break it too. */
  readonly may: readonly string[];
}
