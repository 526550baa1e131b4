/** What is known of one mistake: a fault of the reference server, and what certify() saw of it. */
export interface Signature {
  /** The mistake, in words. */
  readonly name: string;
  /** The requirements that it breaks itself. */
  readonly own: readonly string[];
  /** What it may break besides, because the same answers break it too. */
  readonly may: readonly string[];
  /** What runs of it broke. */
  readonly seen: Readonly<Partial<Record<Recording, Seen>>>;
}

/**
 * full: with all that a target file says, and its own and neighbouring requirements selected; bare: the same by
 * addresses and credentials alone; whole: everything supplied and selected, with another seed.
 */
export const RECORDINGS = ['full', 'bare', 'whole'] as const;
export type Recording = (typeof RECORDINGS)[number];

/** Each broken requirement with its features. */
export type Seen = Readonly<Record<string, readonly string[]>>;
