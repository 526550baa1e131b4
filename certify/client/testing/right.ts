/** Clients of different making, all of them right: none may be blamed. */
import type { Habits } from './small-client.ts';

/** A Link header's rel="next", read as RFC 8288 has it. */
const linkNext = (link: string | null): string | undefined =>
  [...(link ?? '').matchAll(/<([^>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g)].find(
    ([, , rest]) => /;\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)/i.test(rest ?? ''),
  )?.[1];

export const RIGHT: Readonly<Record<string, Habits>> = {
  'as it is': {},
  'asks HEAD first': { headFirst: true },
  'a connection for each request': { keepAlive: false },
  'the Link header leads on': {
    onward: ({ link, url }) => {
      const next = linkNext(link);
      return next === undefined ? undefined : new URL(next, url).href;
    },
  },
  'two retries, then it gives up': { retries5xx: 2, retries429: 2, retriesDropped: 0 },
  'renews its token long before exp': { marginSeconds: 1800 },
  'full jitter': { backoffMs: (retry) => Math.random() * 150 * 2 ** retry, retries5xx: 6 },
  'half jitter': { backoffMs: (retry) => (0.5 + Math.random() / 2) * 80 * 2 ** retry },
  'the first retry at once, then longer each time': {
    backoffMs: (retry) => (retry === 0 ? 0 : 40 * 3 ** retry),
  },
  'a growing wait with a cap': { backoffMs: (retry) => Math.min(300, 60 * 2 ** retry), retries5xx: 8 },
  'leaves duplicates to nobody: there are none': { dedupes: 'never' },
  'ids as text': { idOf: (id) => `"${id}"` },
  'events and pages': { readsEvents: 'deduped' },
  'asks for more scopes than there are': { asks: { scope: 'screenings.read screenings.export' } },
  'pages of its own size': { pageSize: 3 },
  'writes instants of next anew, without a loss': {
    onward: (page) => page.next && new URL(page.next, page.url).href.replace(/%3A/gi, ':'),
  },
  'a parameter order of its own': {
    onward: (page) => {
      if (page.next === undefined) return undefined;
      const next = new URL(page.next, page.url);
      next.searchParams.sort();
      return next.href;
    },
  },
};
