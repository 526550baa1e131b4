/** `verify depths`: shapes of latency over depth behind round trips of 0 to 80 ms; in virtual time. */
import { depthShape, type PageSample, type Shape } from '../estimate/depth.ts';
import { randomSource } from '../k6/lib/random.ts';
import type { TruthRow } from './truth-table.ts';

const PAGE_SIZE = 500;

interface Cost {
  readonly shape: Shape;
  /** Of a page, by the part of the walk before it. */
  readonly workMs: (label: string, part: number) => number;
  readonly msPerThousandRows: number;
}

export function verifyDepths(servers: number, seed: number): TruthRow[] {
  const random = randomSource(seed * 389);
  return Array.from({ length: servers }, (_, index) => {
    const rttMs = 80 * random();
    const walkPages = 100 + Math.floor(200 * random());
    const baseMs = 1 + 3 * random();
    const slowMs = 40 + 80 * random();
    const { shape, workMs, msPerThousandRows } = draw(index, baseMs, slowMs, (walkPages * PAGE_SIZE) / 1000);
    const sample = (label: string, depth: number, work: number): PageSample => ({
      label,
      depth,
      walkPages,
      pageSize: PAGE_SIZE,
      ms: rttMs + work * (0.8 + 0.4 * random()) + 1.5 * random(),
    });
    const pages = (label: string, count: number) =>
      Array.from({ length: count }, (_, depth) => sample(label, depth, workMs(label, depth / walkPages)));
    const found = depthShape([
      ...pages('fresh', walkPages),
      ...Array.from({ length: 25 }, () => sample('empty', 0, 0.5)),
      ...Array.from({ length: 40 }, () => sample('short', 0, workMs('short', 0))),
      ...pages('warm', 16),
    ]);
    const { slope, interval } = found.msPerThousandRows;
    const grows = shape === 'grows-with-depth';
    return {
      server: `${rttMs.toFixed(0)} ms away, ${walkPages * PAGE_SIZE} rows`,
      truth: `${shape}${grows ? `, ${msPerThousandRows.toFixed(3)} ms a 1,000 rows` : ''}`,
      found: `${found.shape}, ${slope.toFixed(3)} (${interval.map((ms) => ms.toFixed(3)).join('…')})`,
      ...(grows ? { error: slope / msPerThousandRows - 1 } : {}),
      verdict: found.shape === shape ? 'right' : 'wrong',
    };
  });
}

function draw(index: number, baseMs: number, slowMs: number, thousands: number): Cost {
  const flat = { msPerThousandRows: 0 };
  switch (index % 4) {
    case 0:
      return {
        shape: 'grows-with-depth',
        workMs: (_, part) => baseMs + slowMs * part,
        msPerThousandRows: slowMs / thousands,
      };
    case 1:
      return { shape: 'flat', workMs: () => baseMs, ...flat };
    case 2:
      return {
        shape: 'slow-first-page',
        workMs: (label, part) => baseMs + (label === 'short' ? 0 : slowMs * (1 - part)),
        ...flat,
      };
    default:
      return {
        shape: 'slow-on-long-windows',
        workMs: (label) => baseMs + (label === 'warm' ? slowMs : 0),
        ...flat,
      };
  }
}
