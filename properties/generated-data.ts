/** Arbitraries for datasets: dense ties, clustered instants, ids that do not follow time. */
import fc from 'fast-check';
import { formatInstant, instant, shift, type Instant } from '../engine/data/instant.ts';
import type { Entry } from './paging-laws.ts';

/** One screening of a dataset: its distance from the previous one, and how it is written. */
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

/** Fractions up to the microsecond, which every store keeps. */
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
  // Not shrunk: simpler gaps make a counterexample easier to read, simpler offsets and ids do not.
  offsetMinutes: fc.noShrink(fc.constantFrom(0, 0, 60, 330, -480, 765)),
  idStep: fc.noShrink(fc.constantFrom(1, 1, 2, 9, 60)),
});

export interface Dataset {
  readonly steps: readonly Step[];
  readonly pageSize: number;
  /** Multiplier of a permutation of the ids, so that ids do not follow time. */
  readonly shuffle: number;
}

export const datasets: fc.Arbitrary<Dataset> = fc
  .noBias(
    fc.record({
      steps: fc.array(steps, { minLength: 1, maxLength: 60, size: 'max' }),
      // Small pages give many page boundaries.
      pageSize: fc.constantFrom(1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12),
      shuffle: fc.constantFrom(1, 7, 11, 13),
    }),
  )
  .filter(
    ({ steps, shuffle }) => new Set(steps.map((_, i) => (i * shuffle) % steps.length)).size === steps.length,
  );

/** A range of time that starts at `at`, and the first of the ids reserved for it. */
export interface Stretch {
  readonly at: Instant;
  readonly id: bigint;
}

/** The screenings of a dataset, in the order in which they are stored. */
export function screeningsOf({ steps, shuffle }: Dataset, from: Stretch): Entry[] {
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
