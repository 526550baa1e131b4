/** Whether a limit counts items or bytes instead of requests: compares full pages with empty ones, both from rest. */

/** Number of full pages, such as a back-fill reads. */
const FULL_PAGES = 100;
/** Tuned: empty pages for each admitted full page; all of them must be admitted if the limit counts items or bytes. */
export const FULL = { more: 1.5 };
/** The limit counts requests if at most this many more empty pages are admitted than full ones. */
const ALIKE = 1;

/** Pages that one client read in succession, until one was rejected. */
export interface PagesRead {
  readonly admitted: number;
  readonly isRejected: boolean;
  readonly retryAfterSeconds?: number | undefined;
  readonly items: number;
  readonly bytes: number;
}

export interface FullPages extends PagesRead {
  /** What the limit counts: requests, if it rejects empty pages as early as full ones. Absent without a rejection. */
  readonly unit?: 'requests' | 'items-or-bytes' | 'cannot-tell';
  /** Number of empty pages that were admitted after a rejection of full ones. */
  readonly emptyAdmitted?: number;
}

/** Only a limiter that was identified, or is absent, rejects the same number of pages each time. */
export const isComparable = ({ kind }: { readonly kind: string }): boolean => kind !== 'cannot-tell';

/** The most pages that the comparison requests. */
export const MOST_PAGES = FULL_PAGES + Math.ceil(FULL.more * FULL_PAGES);

/**
 * `read` waits until the limiter has reset and `afterSeconds` have passed, and then reads at most `count` pages.
 * Undefined if no full page was admitted.
 */
export async function compareFullPages(
  read: (isFull: boolean, count: number, afterSeconds: number) => Promise<PagesRead | undefined>,
): Promise<FullPages | undefined> {
  const full = await read(true, FULL_PAGES, 0);
  if (!full || full.admitted === 0 || full.items === 0) return undefined;
  if (!full.isRejected) return full;
  const empty = await read(false, Math.ceil(FULL.more * full.admitted), full.retryAfterSeconds ?? 0);
  if (!empty) return undefined;
  const isAlike = empty.admitted <= full.admitted + ALIKE;
  const unit = !empty.isRejected ? 'items-or-bytes' : isAlike ? 'requests' : 'cannot-tell';
  return { ...full, unit, emptyAdmitted: empty.admitted };
}
