/** What is known of one mistake: a fault of the reference server, and what certify() saw of it. */
export interface Signature {
  /** The mistake, in words. */
  readonly name: string;
  /** The requirements that it breaks itself. */
  readonly own: readonly string[];
  /** What it may break besides, because the same answers break it too. */
  readonly may: readonly string[];
  /** What runs of it broke, each requirement with its features: with all that a target file says, and bare. */
  readonly seen: readonly Seen[];
}

export type Seen = Readonly<Record<string, readonly string[]>>;
