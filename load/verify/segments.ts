/** `verify segments`: three generators side by side, merged, against one that does all by itself. */
import { bucketOf, quantileBucket, type Histogram } from '../k6/lib/histogram.ts';
import { mergeParts } from '../estimate/merge.ts';
import { startSimulatedServer } from '../simulated/start.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession } from './session.ts';

export interface SegmentsOutcome {
  readonly rows: readonly {
    readonly who: string;
    readonly requests: number;
    readonly rate: number;
    readonly p50: number;
    readonly p99: number;
  }[];
  readonly rateError: number;
  /** How many buckets the medians lie apart. */
  readonly bucketsApart: number;
}

const SEGMENTS = ['0:1/3', '1/3:2/3', '2/3:1'];
const SEQUENCE = '0,1/3,2/3,1';

export async function verifySegments(
  k6: string,
  requestsPerSecond: number,
  seconds: number,
  leadMs = 4000,
): Promise<SegmentsOutcome> {
  // A service time in the middle of a bucket: the machine's noise does not carry it over the bucket's edge.
  const serviceMs = middleOfBucket(20);
  await using server = await startSimulatedServer({
    service: { workers: 64, serviceMs, distribution: 'deterministic' },
  });
  const session = await openSession(k6, server.target(), { pageSize: 10 });
  const config = session.config('arrivals', { requestsPerSecond, seconds, vus: 60, records: false });
  const one = await session.run('arrivals', { ...config, startAtMs: Date.now() + leadMs });
  const startAtMs = Date.now() + leadMs;
  const three = await Promise.all(
    SEGMENTS.map((segment) =>
      session.run('arrivals', { ...config, startAtMs }, [
        '--execution-segment',
        segment,
        '--execution-segment-sequence',
        SEQUENCE,
      ]),
    ),
  );
  const whole = mergeParts([{ ...one.summary!, seconds }]);
  const merged = mergeParts(three.map((part) => ({ ...part.summary!, seconds })));
  const row = (who: string, histogram: Histogram, requests: number, rate: number) => ({
    who,
    requests,
    rate,
    p50: quantileBucket(histogram, 0.5),
    p99: quantileBucket(histogram, 0.99),
  });
  return {
    rows: [
      row('one generator', whole.histogram, whole.requests, whole.requestsPerSecond),
      ...three.map((part, index) => {
        const { histogram, requests, requestsPerSecond: rate } = mergeParts([{ ...part.summary!, seconds }]);
        return row(`segment ${SEGMENTS[index]}`, histogram, requests, rate);
      }),
      row('three, merged', merged.histogram, merged.requests, merged.requestsPerSecond),
    ],
    rateError: merged.requestsPerSecond / whole.requestsPerSecond - 1,
    bucketsApart: Math.abs(quantileBucket(merged.histogram, 0.5) - quantileBucket(whole.histogram, 0.5)),
  };
}

function middleOfBucket(nearMs: number): number {
  let ms = nearMs;
  while (bucketOf(ms * 0.985) !== bucketOf(ms * 1.015)) ms *= 1.002;
  return ms;
}

export function segmentsTable({ rows, rateError, bucketsApart }: SegmentsOutcome): {
  text: string;
  ok: boolean;
} {
  const table = textTable(
    ['who', 'requests', 'rate/s', 'p50 bucket', 'p99 bucket'],
    rows.map((row) => [row.who, row.requests, row.rate.toFixed(2), row.p50, row.p99]),
  );
  return {
    text: `${table}\n\nrate differs by ${(rateError * 100).toFixed(2)} %, the median by ${bucketsApart} buckets`,
    ok: Math.abs(rateError) <= 0.01 && bucketsApart <= 1,
  };
}
