/** Datasets that fast-check draws: dense ties, clustered instants, ids that do not follow time. */
import fc from 'fast-check';
import { formatInstant, instant, shift, type Instant } from '../engine/data/instant.ts';
import type { Entry } from './law.ts';

/** A screening in the making: its distance to the one before, and how it is written. */
export interface Step {
  readonly gap: 'tie' | 'nanosecond' | 'microsecond' | 'millisecond' | 'second' | 'hour';
  readonly offsetMinutes: number;
  readonly idStep: number;
}

export const GAPS: Readonly<Record<Step['gap'], bigint>> = {
  tie: 0n,
  nanosecond: 1n,
  microsecond: 1_000n,
  millisecond: 1_000_000n,
  second: 1_000_000_000n,
  hour: 3_600_000_000_000n,
};

/** Dense ties and clustered instants; fractions to the microsecond, as every store keeps them. */
const steps: fc.Arbitrary<Step> = fc.record({
  gap: fc.constantFrom(
    'tie',
    'tie',
    'tie',
    'tie',
    'microsecond',
    'microsecond',
    'millisecond',
    'second',
    'hour',
  ),
  // Which of them does not matter to a reader: shrinking goes into gaps.
  offsetMinutes: fc.noShrink(fc.constantFrom(0, 0, 60, 330, -480, 765)),
  idStep: fc.noShrink(fc.constantFrom(1, 1, 2, 9, 60)),
});

export interface Dataset {
  readonly steps: readonly Step[];
  readonly pageSize: number;
  /** A permutation by its multiplier: ids don't follow time. */
  readonly shuffle: number;
}

export const datasets: fc.Arbitrary<Dataset> = fc.noBias(
  fc.record({
    steps: fc.array(steps, { minLength: 1, maxLength: 60, size: 'max' }),
    // Small pages: the more of them, the more boundaries.
    pageSize: fc.constantFrom(1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12),
    shuffle: fc.constantFrom(1, 7, 11, 13),
  }),
);

const STRETCHES = 28_000;
const STRETCH_DAYS = 3;
const IDS_A_STRETCH = 5_000;
let taken = 0;

/** A stretch of time and of ids that nothing else uses: the clock keeps runs apart, a count the datasets of one. */
export function freshStretch(): { at: Instant; id: bigint } {
  const n = taken++;
  const place = (Math.floor(Date.now() / 1000) * 31 + n) % STRETCHES;
  return {
    at: shift(instant('1971-01-01T00:00:00Z'), BigInt(place * STRETCH_DAYS * 86_400), 0),
    id: 1_000_000_000n + BigInt((Date.now() % 1_000_000_000) + n) * BigInt(IDS_A_STRETCH),
  };
}

/** The screenings of a dataset, in the order in which they are stored. */
export function screeningsOf({ steps, shuffle }: Dataset, from: { at: Instant; id: bigint }): Entry[] {
  let { at } = from;
  let id = from.id;
  const times = steps.map(({ gap, offsetMinutes }) => {
    at = shift(at, GAPS[gap], 9);
    return formatInstant(at, { offsetMinutes });
  });
  const ids = steps.map(({ idStep }) => (id += BigInt(idStep)));
  return times.map((testTime, i) => ({
    id: ids[(i * shuffle) % ids.length]!,
    testTime,
    at: instant(testTime),
  }));
}

export const lineOf = (tenantId: string, { id, testTime }: Entry): string =>
  `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}"}`;

export const uniqueIds = ({ steps, shuffle }: Dataset): boolean => {
  const places = steps.map((_, i) => (i * shuffle) % steps.length);
  return new Set(places).size === steps.length;
};
