/** Simulated servers with known costs of pages: defects of the page query, and conditions that resemble them. */
import { type DeepPage, depthShape, pairedAt, type Shape, type WindowPair } from '../estimate/depth.ts';
import { randomSource } from '../k6/lib/random.ts';
import type { Draw } from './targets.ts';

interface PageWork {
  /** Rows of the tenant before the page, of the window before the page, and of the window from the page on. */
  readonly rowsBefore: number;
  readonly rowsSkipped: number;
  readonly rowsLeft: number;
  readonly resumed: boolean;
}

/** Extra milliseconds of one page. */
type PageCost = (work: PageWork) => number;

const MS_PER_ROW = { offset: 0.0008, orForm: 0.0006, sort: 0.0006, count: 0.0006, bitmap: 0.0007 };
/** PostgreSQL plans a prepared statement for its parameters five times before it considers a generic plan. */
const CUSTOM_PLANS = 5;
const SHORT_WINDOW_ROWS = 2000;

/** The cost by defect, with the state of a database, and the shape that it causes. */
const DEFECTS = {
  offset: [
    'grows-with-depth',
    () =>
      ({ rowsSkipped }) =>
        rowsSkipped * MS_PER_ROW.offset,
  ],
  // With few rows left the planner scans the index from its other end.
  'or-form': [
    'grows-with-depth',
    () =>
      ({ resumed, rowsBefore, rowsLeft }) =>
        resumed && rowsLeft > 0.04 * (rowsBefore + rowsLeft) ? rowsBefore * MS_PER_ROW.orForm : 0,
  ],
  'sort-by-text': [
    'slow-on-long-windows',
    () =>
      ({ rowsLeft }) =>
        rowsLeft * MS_PER_ROW.sort,
  ],
  'generic-plan': [
    'slow-on-long-windows',
    () => {
      let shortWindows = 0;
      return ({ rowsLeft }) => {
        if (rowsLeft < SHORT_WINDOW_ROWS) shortWindows += 1;
        return shortWindows >= CUSTOM_PLANS ? rowsLeft * MS_PER_ROW.bitmap : 0;
      };
    },
  ],
  'count-first': [
    'slow-first-page',
    () =>
      ({ rowsLeft, resumed }) =>
        resumed ? 0 : rowsLeft * MS_PER_ROW.count,
  ],
} as const satisfies Record<string, readonly [Shape, () => PageCost]>;

/** `millisecond-cursor` costs nothing, but repeats items. */
export type PagingDefect = keyof typeof DEFECTS | 'millisecond-cursor';

/** `factor` multiplies the cost of each row, so that fewer rows show the same shape. */
export function pageCost(defect: PagingDefect | undefined, factor = 1): PageCost {
  const cost = defect === undefined || defect === 'millisecond-cursor' ? () => 0 : DEFECTS[defect][1]();
  return (work) => cost(work) * factor;
}

const PAGE_SIZE = 500;

/**
 * Factor on the cost of a page that the query does not cause. `part`: position in the data, 0 to 1; `request`: number
 * of the request; `again`: whether the same rows were just read.
 */
type Environment = (part: number, request: number, again: boolean) => number;

const ENVIRONMENTS: Readonly<Record<string, Environment>> = {
  'nothing else': () => 1,
  'slow old storage': (part) => (part < 0.7 ? 8 : 1),
  'larger new items': (part) => 1 + 6 * part,
  'a cache of what was just read': (_part, _request, again) => (again ? 0.25 : 1),
  'a noisy neighbour': (_part, request) => (Math.floor(request / 23) % 3 === 1 ? 6 : 1),
  'caches that warm': (_part, request) => 1 + 8 * Math.exp(-request / 60),
};

export const DEPTH_SERVERS = {
  depths: (index, random, seed) => {
    const names = Object.keys(DEFECTS) as (keyof typeof DEFECTS)[];
    const defect = index % 2 === 0 ? undefined : names[(index >> 1) % names.length]!;
    const environments = Object.entries(ENVIRONMENTS);
    const [around, environment] = environments[(index >> 1) % environments.length]!;
    const rttMs = 80 * random();
    const walkPages = [26, 60, 150, 400][Math.floor(4 * random())]! * (defect ? 4 : 1);
    const baseMs = 1 + 3 * random();
    const shape = defect ? DEFECTS[defect][0] : 'flat';
    return {
      name: `${defect ?? 'a right query'}, ${around}, ${rttMs.toFixed(0)} ms away, ${walkPages} pages`,
      truth: shape,
      judge: () => {
        const found = depthShape(read({ walkPages, rttMs, baseMs }, pageCost(defect), environment, seed));
        const { deep, long, settled } = found.ratios;
        return {
          found: `${found.shape}, ${[deep, long, settled].map((ratio) => ratio.toFixed(2)).join(' ')}`,
          verdict: found.shape === shape ? ('right' as const) : ('wrong' as const),
        };
      },
    };
  },
} satisfies Record<string, Draw>;

/** Sends the requests of the scenario: a traversal with pairs, then pairs of windows, before and after short windows. */
function read(
  { walkPages, rttMs, baseMs }: { walkPages: number; rttMs: number; baseMs: number },
  cost: PageCost,
  environment: Environment,
  seed: number,
) {
  const random = randomSource(seed);
  const rows = walkPages * PAGE_SIZE;
  let request = 0;
  const ask = (
    rowsBefore: number,
    rowsLeft: number,
    skipped: number,
    resumed: boolean,
    again = false,
  ): number => {
    request += 1;
    const work = baseMs + cost({ rowsBefore, rowsSkipped: skipped, rowsLeft, resumed });
    const factor = environment(rowsBefore / rows, request, again) * (0.8 + 0.4 * random());
    return rttMs + work * factor + 1.5 * random();
  };
  const pages = Array.from({ length: walkPages }, (_, depth): DeepPage => {
    const before = depth * PAGE_SIZE;
    const deep = (again = false): number => ask(before, rows - before, before, depth > 0, again);
    const paired = pairedAt(depth);
    if (!paired) return { depth, ms: deep() };
    const first = (again = false): number => ask(before, rows - before, 0, false, again);
    if (paired === 'deep-last') {
      const firstMs = first();
      return { depth, ms: deep(true), firstMs };
    }
    const ms = deep();
    return { depth, ms, firstMs: first(true) };
  });
  const pairs = (count: number, settled: boolean): WindowPair[] =>
    Array.from({ length: count }, (_, pair) => {
      const before = Math.floor((0.9 * rows * pair) / count);
      const [short, long] = [
        (again: boolean) => ask(before, PAGE_SIZE * 1.3, 0, false, again),
        (again: boolean) => ask(before, rows - before, 0, false, again),
      ];
      if (pair % 2 === 0) {
        const shortMs = short(false);
        return { shortMs, longMs: long(true), settled };
      }
      const longMs = long(false);
      return { shortMs: short(true), longMs, settled };
    });
  const early = pairs(4, false);
  for (let short = 0; short < 8; short += 1) ask(0, PAGE_SIZE, 0, false);
  return {
    pages,
    windows: [...early, ...pairs(12, true)],
    emptyMs: Array.from({ length: 25 }, () => rttMs + 0.5 + 1.5 * random()),
    pageSize: PAGE_SIZE,
  };
}
