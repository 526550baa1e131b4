/** Variants that take long to certify, so each runs alone. */
import { eachItem } from '../faults/rows.ts';
import type { ServerOptions } from '../run/start.ts';
import { probing, variants, type Variant } from './variant.ts';

const withMember = (name: string, value: unknown): ServerOptions =>
  eachItem((item) => ({ ...item, json: item.json.replace(/\}$/, `,"${name}":${JSON.stringify(value)}}`) }));

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
  'items of 260 kB': {
    server: withMember('picture', 'A'.repeat(260_000)),
    // No capture has items of this size; the dataset is of an earlier version without pictures.
    target: ({ events: _, window: __, ...target }) => target,
  },
});
