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
 * `fromRest`: number of empty pages that the limiter admitted after a pause, without waiting for a refill; pages read in
 * succession may last longer than a window. Undefined if it admitted no full page.
 */
export async function compareFullPages(
  read: (isFull: boolean, count: number, afterSeconds: number) => Promise<PagesRead | undefined>,
  fromRest = Infinity,
): Promise<FullPages | undefined> {
  const full = await read(true, FULL_PAGES, 0);
  if (!full || full.admitted === 0 || full.items === 0) return undefined;
  if (!full.isRejected) return full;
  const alike = full.admitted + ALIKE;
  if (fromRest <= alike) return { ...full, unit: 'requests' };
  const count = Math.ceil(FULL.more * full.admitted);
  const empty = await read(false, count, full.retryAfterSeconds ?? 0);
  if (!empty) return undefined;
  const emptyAdmitted = Math.min(empty.admitted, fromRest);
  const unit = emptyAdmitted <= alike ? 'requests' : emptyAdmitted < count ? 'cannot-tell' : 'items-or-bytes';
  return { ...full, unit, emptyAdmitted };
}
