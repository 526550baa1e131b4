/** Clients of different making, all of them right: none may be blamed. */
import { formatInstant, instant } from '../../../engine/data/instant.ts';
import type { Habits } from './small-client.ts';

/** A Link header's rel="next", read as RFC 8288 has it. */
const linkNext = (link: string | null): string | undefined =>
  [...(link ?? '').matchAll(/<([^>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g)].find(
    ([, , rest]) => /;\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)/i.test(rest ?? ''),
  )?.[1];

export interface Right {
  readonly habits: Habits;
  /** The slow situations that have something to do with it. */
  readonly plays?: RegExp;
  readonly without?: readonly string[];
}

export const RIGHT: Readonly<Record<string, Right>> = {
  'as it is': { habits: {}, plays: /./ },
  'asks HEAD first': { habits: { headFirst: true }, plays: /429-twice/ },
  'a connection for each request': { habits: { keepAlive: false } },
  'the Link header leads on': {
    habits: {
      onward: ({ link, url }) => {
        const next = linkNext(link);
        return next === undefined ? undefined : new URL(next, url).href;
      },
    },
  },
  'two retries, then it gives up': {
    habits: { retries5xx: 2, retries429: 2, retriesDropped: 0 },
    plays: /three|for-ever|429/,
  },
  'renews its token long before exp': { habits: { marginSeconds: 1800 }, plays: /margin|expires|long/ },
  'full jitter': {
    habits: { backoffMs: (retry) => Math.random() * 150 * 2 ** retry, retries5xx: 6 },
    plays: /three|for-ever/,
  },
  'half jitter': {
    habits: { backoffMs: (retry) => (0.5 + Math.random() / 2) * 80 * 2 ** retry },
    plays: /three|for-ever/,
  },
  'the first retry at once, then longer each time': {
    habits: { backoffMs: (retry) => (retry === 0 ? 0 : 40 * 3 ** retry) },
    plays: /three|for-ever/,
  },
  'a growing wait with a cap': {
    habits: { backoffMs: (retry) => Math.min(300, 60 * 2 ** retry), retries5xx: 8 },
    plays: /three|for-ever/,
  },
  'leaves duplicates to nobody: there are none': { habits: { dedupes: 'never' } },
  'ids as text': { habits: { idOf: (id) => `"${id}"` } },
  'events and pages': { habits: { readsEvents: 'deduped' } },
  'asks for more scopes than there are': { habits: { asks: { scope: 'screenings.read screenings.export' } } },
  'pages of its own size': { habits: { pageSize: 3 }, plays: /429-twice|three/ },
  'writes next in a spelling of its own, without a loss': {
    habits: { onward: (page) => page.next && new URL(page.next, page.url).href.replace(/%3A/gi, ':') },
  },
  // Not of windows that do not hold the instant.
  'two halves of the window, side by side': {
    habits: { splitAt: '2026-03-02T08:20:00Z' },
    plays: /long|three|for-ever|429-with|margin|expires/,
    without: ['empty-window', 'summer-time-ends'],
  },
  'puts the from of next into UTC': {
    habits: {
      onward: (page) => {
        if (page.next === undefined) return undefined;
        const next = new URL(page.next, page.url);
        next.searchParams.set('from', formatInstant(instant(next.searchParams.get('from')!)));
        return next.href;
      },
    },
  },
  'a parameter order of its own': {
    habits: {
      onward: (page) => {
        if (page.next === undefined) return undefined;
        const next = new URL(page.next, page.url);
        next.searchParams.sort();
        return next.href;
      },
    },
  },
};
