/** What latency does with depth and with the window's length: the shape that a mistake in the page query leaves. */
import { largest, median, theilSen, type Slope } from './numbers.ts';

/** One page that was read while walking. */
export interface PageSample {
  /** Which walk; `long` windows read `fresh`, before any short one, and `warm`, after many of them. */
  readonly label: string;
  /** Pages before this one in its walk. */
  readonly depth: number;
  /** Pages of the whole walk. */
  readonly walkPages: number;
  readonly pageSize: number;
  readonly ms: number;
}

export type Shape = 'flat' | 'grows-with-depth' | 'slow-on-long-windows' | 'slow-first-page';

export interface DepthFinding {
  readonly flat: boolean;
  readonly shape: Shape;
  /** Milliseconds for 1,000 rows more before the page, by Theil–Sen, with its 95 % interval. */
  readonly msPerThousandRows: Slope;
  /** What an empty page takes: the way there and back, which is no work of the page. */
  readonly emptyMs: number;
  /** Rows that were walked: nothing is known of deeper pages. */
  readonly rows: number;
  /** In words: which mistakes leave this shape. */
  readonly likelyCause?: string;
  /** Latency at the end of a long walk against its beginning, and of first pages: long windows against short. */
  readonly ratios: { readonly deep: number; readonly first: number; readonly warm: number };
  readonly points: readonly { readonly depth: number; readonly p50Ms: number }[];
}

/** A page counts as slow at so many times the work of the other, and so many milliseconds more: noise is smaller. */
const FACTOR = 2.5;
const LEAST_MS = 5;
const BINS = 20;

/**
 * Names the shape. Samples labelled `fresh`, `short` and `warm` are needed; `empty` ones, of windows of zero width, say
 * what the way costs by itself; others only add to the tables.
 */
export function depthShape(samples: readonly PageSample[]): DepthFinding {
  const of = (label: string): PageSample[] => samples.filter((one) => one.label === label);
  const [fresh, short, warm] = [of('fresh'), of('short'), of('warm')];
  const part = (pages: readonly PageSample[], from: number, to: number): number =>
    median(
      pages
        .filter(({ depth, walkPages }) => depth >= from * walkPages && depth < to * walkPages)
        .map(({ ms }) => ms),
    );
  const shortMs = median(short.map(({ ms }) => ms));
  const start = part(fresh, 0, 0.08);
  const late = part(fresh, 0.6, 0.9);
  const end = part(fresh, 0.985, 1.01);
  const warmStart = part(warm, 0, 0.08);
  const points = curve(fresh);
  // At least that, or the quickest page of all: the work of a page is what it takes beyond the way.
  const emptyMs = Math.min(
    median(of('empty').map(({ ms }) => ms)) || 0,
    ...[shortMs, start].filter((ms) => !Number.isNaN(ms)),
  );
  const slower = (one: number, other: number): boolean =>
    one - emptyMs > (other - emptyMs) * FACTOR && one > other + LEAST_MS;
  const pageSize = fresh[0]?.pageSize ?? 1;
  const rows = fresh.length * pageSize;
  // The end is left out: where few rows are left a planner may turn to another plan.
  const walked = fresh.filter(({ depth, walkPages }) => depth > 0 && depth < 0.9 * walkPages);
  const msPerThousandRows = theilSen(walked.map(({ depth, ms }) => [(depth * pageSize) / 1000, ms]));
  const growthMs = (slope: number): number => (slope * rows) / 1000;
  const work = Math.max(1, start - emptyMs);
  const grows =
    msPerThousandRows.interval[0] > 0 &&
    growthMs(msPerThousandRows.slope) > Math.max(LEAST_MS, (FACTOR - 1) * work);
  const ratios = { deep: late / start, first: start / shortMs, warm: warmStart / start };
  const finding = (shape: Shape, likelyCause?: string): DepthFinding => ({
    flat: shape === 'flat',
    shape,
    ...(likelyCause ? { likelyCause } : {}),
    msPerThousandRows,
    emptyMs,
    rows,
    ratios,
    points,
  });

  if (slower(late, start) || grows) {
    return slower(late, end)
      ? finding(
          'grows-with-depth',
          'the cursor as `t > … OR (t = … AND id > …)`, which no index range serves: the rows before the page are read and thrown away, except near the end',
        )
      : finding('grows-with-depth', 'OFFSET, or another way of reading all rows before the page');
  }
  if (slower(start, shortMs)) {
    return slower(start, end)
      ? finding(
          'slow-first-page',
          'the rest of the window is sorted for each page: ORDER BY something that the index does not hold, such as the time as text',
        )
      : finding('slow-on-long-windows', 'each page costs the whole window, such as a count of all rows');
  }
  if (slower(warmStart, start)) {
    return finding(
      'slow-on-long-windows',
      "a plan kept from short windows is used for long ones (a prepared statement's generic plan; plan_cache_mode=force_custom_plan cures it)",
    );
  }
  return finding('flat');
}

/** Median latency over depth, in bins. */
function curve(pages: readonly PageSample[]): { depth: number; p50Ms: number }[] {
  const deepest = largest(
    pages.map(({ depth }) => depth),
    0,
  );
  const width = Math.max(1, Math.ceil((deepest + 1) / BINS));
  const bins = new Map<number, number[]>();
  for (const { depth, ms } of pages) {
    const bin = Math.floor(depth / width);
    bins.set(bin, [...(bins.get(bin) ?? []), ms]);
  }
  return [...bins]
    .sort(([a], [b]) => a - b)
    .map(([bin, values]) => ({ depth: bin * width, p50Ms: median(values) }));
}
