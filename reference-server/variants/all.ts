/** All variants; those of a group run together in one server, the ones of earlier files innermost. */
import { probing } from '../faults/fault.ts';
import { eachItem } from '../faults/rows.ts';
import type { ServerOptions } from '../run/start.ts';
import { accidents } from './accidents.ts';
import { health } from './health.ts';
import { pages } from './pages.ts';
import { refusals } from './refusals.ts';
import { stacks } from './stacks.ts';
import { stores } from './stores.ts';
import { tokens } from './tokens.ts';
import { transport } from './transport.ts';
import { variants, type Variant } from './variant.ts';

export const GROUPS: Readonly<Record<string, readonly Variant[]>> = {};
for (const groups of [tokens, stores, pages, refusals, accidents, health, stacks, transport])
  for (const [name, rows] of Object.entries(groups))
    Object.assign(GROUPS, { [name]: [...(GROUPS[name] ?? []), ...variants(rows)] });

const withMember = (name: string, value: unknown, [from, to] = ['0', '9']): ServerOptions => {
  const member = `,"${name}":${JSON.stringify(value)}}`;
  const isMeant = (testTime: string): boolean => testTime >= from! && testTime < to!;
  return eachItem((item) =>
    isMeant(item.testTime) ? { ...item, json: item.json.slice(0, -1) + member } : item,
  );
};

/** No capture has items of this size; the dataset is of an earlier version without pictures. */
const withPicture = (...between: [from: string, to: string]): Pick<Variant, 'server' | 'target'> => ({
  server: withMember('picture', 'A'.repeat(260_000), between),
  target: ({ events: _, window: __, ...target }) => target,
});

/** Each takes long to certify. */
export const ALONE: readonly Variant[] = variants({
  'a rate limit of 25 a second, sliding': {
    server: { rateLimit: { limit: 25, windowMs: 1_000, algorithm: 'sliding-window' } },
    target: probing(200),
  },
  'a rate limit by token bucket with a burst': {
    server: { rateLimit: { limit: 40, windowMs: 1_000, algorithm: 'token-bucket', burst: 80 } },
    target: probing(400),
  },
  'items of 450 values': {
    server: withMember(
      'samples',
      Array.from({ length: 450 }, (_, n) => n % 10),
    ),
    // No capture or dataset has items of this size.
    target: ({ events: _, window: __, dataset: ___, secondDataset: ____, ...target }) => target,
  },
  // More than a page of the default size: pages of 26 MB, larger ones that are not read, and small ones.
  'items of 260 kB': withPicture('0', '2024-07'),
  'items of 260 kB after small ones': withPicture('2024-09', '9'),
});
