/** Correct clients of different kinds, which must have no finding. */
import { formatInstant, instant } from '../../../engine/data/instant.ts';
import type { Habits, PageSeen } from './small-client.ts';

/** The target of rel="next" in a Link header (RFC 8288). */
const linkNext = (link: string): string | undefined =>
  [...link.matchAll(/<([^>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g)].find(([, , rest]) =>
    /;\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)/i.test(rest ?? ''),
  )?.[1];

/** Follows the URL from the Link header instead of links.next. */
export const linked =
  (find: (link: string) => string | undefined) =>
  (_next: URL, { link, url }: PageSeen): URL | undefined => {
    const found = find(link ?? '');
    return found === undefined ? undefined : new URL(found, url);
  };

interface Right {
  readonly habits: Habits;
  /** Situations that do not apply to it. */
  readonly without?: readonly string[];
}

export const RIGHT: Readonly<Record<string, Right>> = {
  'as it is': { habits: {} },
  'asks HEAD first': { habits: { headFirst: true } },
  'the Link header leads on': {
    habits: { onward: linked(linkNext) },
  },
  'two retries, then it gives up': {
    habits: { retries5xx: 2, retries429: 2, retriesDropped: 0 },
  },
  'renews its token long before exp': { habits: { marginSeconds: 1800 } },
  'full jitter': {
    habits: { backoffMs: (retry) => Math.random() * 150 * 2 ** retry, retries5xx: 6 },
  },
  'half jitter': {
    habits: { backoffMs: (retry) => (0.5 + Math.random() / 2) * 80 * 2 ** retry },
  },
  'the first retry immediately, then longer each time': {
    habits: { backoffMs: (retry) => (retry === 0 ? 0 : 40 * 3 ** retry) },
  },
  'a growing wait with a cap': {
    habits: { backoffMs: (retry) => Math.min(300, 60 * 2 ** retry), retries5xx: 8 },
  },
  'removes no duplicates: there are none': { habits: { dedupes: 'never' } },
  'ids as text': { habits: { idOf: (id) => `"${id}"` } },
  'events and pages': { habits: { readsEvents: 'deduped' } },
  'asks for more scopes than there are': { habits: { asks: { scope: 'screenings.read screenings.export' } } },
  'pages of its own size': { habits: { pageSize: 3 } },
  'writes next in a spelling of its own, without a loss': {
    habits: { onward: (next) => next.href.replace(/%3A/gi, ':') },
  },
  // These windows do not contain the instant.
  'two halves of the window, concurrently': {
    habits: { splitAt: '2026-03-02T08:20:00Z' },
    without: ['empty-window', 'summer-time-ends'],
  },
  'puts the from of next into UTC': {
    habits: {
      onward: (next) => {
        next.searchParams.set('from', formatInstant(instant(next.searchParams.get('from')!)));
        return next;
      },
    },
  },
  'a parameter order of its own': {
    habits: {
      onward: (next) => {
        next.searchParams.sort();
        return next;
      },
    },
  },
};
