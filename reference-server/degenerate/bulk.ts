/** Answers just below the kit's limits, each of another shape; the token endpoint works. */
import { withTokenEndpoint, type Degenerate, http, json, TENANT } from './tools.ts';

/** Screenings one second apart, from 2026-03-01 on. */
function screenings(count: number, more: object = {}): object[] {
  const first = Date.parse('2026-03-01T00:00:00Z');
  return Array.from({ length: count }, (_, n) => ({
    id: n + 1,
    tenantId: TENANT,
    testTime: new Date(first + n * 1000).toISOString(),
    ...more,
  }));
}

const fields = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, n]));
const PAGES: Readonly<Record<string, () => object>> = {
  '60,000 screenings in every page': () => ({ items: screenings(60_000), links: {} }),
  'a thousand screenings of 240 fields in every page': () => ({
    items: screenings(1000, fields(237)),
    links: {},
  }),
  'a thousand screenings of 15 kB in every page': () => ({
    items: screenings(1000, { more: 'x'.repeat(15_000) }),
    links: {},
  }),
  'a thousand screenings of 15 kB of escapes in every page': () => ({
    items: screenings(1000, { more: '\u0001'.repeat(2_500) }),
    links: {},
  }),
  '240,000 numbers in addition to an empty page': () => ({
    items: [],
    links: {},
    more: Array.from({ length: 240_000 }, (_, n) => n),
  }),
};

export const BULK: readonly Degenerate[] = [
  ...Object.entries(PAGES).map(([name, page]) => {
    let text: string | undefined;
    return http(
      name,
      withTokenEndpoint(() => json(200, (text ??= JSON.stringify(page())))),
      { slow: true },
    );
  }),
  http('a refusal of 15 MB for everything', withTokenEndpoint(json(400, { code: 'x'.repeat(15_000_000) })), {
    slow: true,
  }),
];
