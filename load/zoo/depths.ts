/** Servers of the zoo whose pages cost by a known shape, behind round trips of 0 to 80 ms. */
import { depthShape, type PageSample, type Shape } from '../estimate/depth.ts';
import { randomSource } from '../k6/lib/random.ts';
import type { Draw } from './zoo-server.ts';

const PAGE_SIZE = 500;

interface Cost {
  readonly shape: Shape;
  /** Of a page, by the part of the walk before it. */
  readonly workMs: (label: string, part: number) => number;
  readonly msPerThousandRows: number;
}

export const DEPTH_SERVERS = {
  depths: (index, random, seed) => {
    const rttMs = 80 * random();
    const walkPages = 100 + Math.floor(200 * random());
    const { shape, workMs, msPerThousandRows } = draw(
      index,
      1 + 3 * random(),
      40 + 80 * random(),
      (walkPages * PAGE_SIZE) / 1000,
    );
    const grows = shape === 'grows-with-depth';
    return {
      name: `${rttMs.toFixed(0)} ms away, ${walkPages * PAGE_SIZE} rows`,
      truth: `${shape}${grows ? `, ${msPerThousandRows.toFixed(3)} ms a 1,000 rows` : ''}`,
      judge: () => {
        const noise = randomSource(seed);
        const sample = (label: string, depth: number, work: number): PageSample => ({
          label,
          depth,
          walkPages,
          pageSize: PAGE_SIZE,
          ms: rttMs + work * (0.8 + 0.4 * noise()) + 1.5 * noise(),
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
        return {
          found: `${found.shape}, ${slope.toFixed(3)} (${interval.map((ms) => ms.toFixed(3)).join('…')})`,
          error: grows ? slope / msPerThousandRows - 1 : undefined,
          verdict: found.shape === shape ? ('right' as const) : ('wrong' as const),
        };
      },
    };
  },
} satisfies Record<string, Draw>;

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
