/** Simulated servers with known costs of pages: defects of the page query, and conditions that resemble them. */
import { pairedAt, type Shape } from '../estimate/depth.ts';
import { exponential, randomSource } from '../estimate/random.ts';
import type { PageRecord } from '../k6/lib/record.ts';
import { confirmDepth, type ReadWalks } from '../scenarios/paging.ts';
import type { DrawServer } from './targets.ts';

interface PageWork {
  /** Rows of the tenant before the page, and of the window from the page on. */
  readonly rowsBefore: number;
  readonly rowsLeft: number;
  /** Whether it continues a traversal, which began with the tenant's first row. */
  readonly resumed: boolean;
  /** Short windows that the database has answered so far. */
  readonly shortWindows: number;
}

const MS_PER_ROW = 0.0007;
/** PostgreSQL plans a prepared statement for its parameters five times before it considers a generic plan. */
const CUSTOM_PLANS = 5;
const SHORT_WINDOW_ROWS = 2000;

/** By query: the shape that it causes, and the number of rows that it reads in vain. */
const QUERIES: Readonly<Record<string, readonly [Shape, (work: PageWork) => number]>> = {
  offset: ['grows-with-depth', ({ rowsBefore, resumed }) => (resumed ? rowsBefore : 0)],
  'or-form': [
    'grows-with-depth',
    // With few rows left the planner scans the index from its other end.
    ({ resumed, rowsBefore, rowsLeft }) =>
      resumed && rowsLeft > 0.04 * (rowsBefore + rowsLeft) ? rowsBefore : 0,
  ],
  'sort-by-text': ['slow-on-long-windows', ({ rowsLeft }) => rowsLeft],
  'generic-plan': [
    'slow-on-long-windows',
    ({ shortWindows, rowsLeft }) => (shortWindows >= CUSTOM_PLANS ? rowsLeft : 0),
  ],
  'count-first': ['slow-first-page', ({ rowsLeft, resumed }) => (resumed ? 0 : rowsLeft)],
  'a third more work for next pages': ['flat', ({ resumed }) => (resumed ? 40_000 : 30_000)],
  'the same additional work for each next page': ['flat', ({ resumed }) => (resumed ? 12_000 : 0)],
};
const RIGHT = ['flat', () => 0] as const;

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
  'a fast and a slow replica in turn': (_part, request) => (request % 2 === 0 ? 1 : 8),
  'latencies that vary much': (_part, request) => 0.3 + exponential(randomSource(request), 3),
};

/** Factors on the cost of a page that a cache of answers has, and has not. */
const [CACHED, NOT_CACHED] = [0.1, 8];

const drawDepths =
  (hasCache: boolean): DrawServer =>
  (random, index, seed) => {
    const names = Object.keys(QUERIES);
    const query = index % 2 === 0 ? undefined : names[(index >> 1) % names.length]!;
    const environments = Object.entries(ENVIRONMENTS);
    const [around, environment] = environments[(index >> 1) % environments.length]!;
    const rttMs = 80 * random();
    const walkPages = [26, 60, 150, 400][Math.floor(4 * random())]! * (query ? 4 : 1);
    const baseMs = 1 + 3 * random();
    const [shape, rowsInVain] = query ? QUERIES[query]! : RIGHT;
    return {
      name: `${query ?? 'a right query'}, ${around}, ${rttMs.toFixed(0)} ms away, ${walkPages} pages`,
      truth: shape,
      judge: async () => {
        const costMs = (work: PageWork): number => baseMs + MS_PER_ROW * rowsInVain(work);
        const read = answers(walkPages, rttMs, costMs, environment, hasCache, seed);
        const { found, isSame } = await confirmDepth(read, WINDOW, { pageSize: PAGE_SIZE });
        const { deep, long, settled } = found.ratios;
        return {
          found: `${found.shape}, ${[deep, long, settled].map((ratio) => ratio.toFixed(2)).join(' ')}`,
          verdict: found.isOpen || !isSame ? 'undecided' : found.shape === shape ? 'right' : 'wrong',
        };
      },
    };
  };

export const DEPTH_SERVERS = { depths: drawDepths(false), 'cached-depths': drawDepths(true) };

const WINDOW = { from: '2020-01-01T00:00:00Z', to: '2030-01-01T00:00:00Z' };
const [FIRST_MS, LAST_MS] = [Date.parse(WINDOW.from), Date.parse(WINDOW.to)];

/** Answers the requests of the scenario; its screenings are evenly spread over the window. */
function answers(
  walkPages: number,
  rttMs: number,
  costMs: (work: PageWork) => number,
  environment: Environment,
  hasCache: boolean,
  seed: number,
): ReadWalks {
  const random = randomSource(seed);
  const rows = walkPages * PAGE_SIZE;
  let [request, shortWindows, readBefore] = [0, 0, NaN];
  const urls = new Set<string>();
  const ask = (rowsBefore: number, rowsLeft: number, resumed: boolean, pageSize: number): number => {
    const url = [rowsBefore, rowsLeft, resumed, pageSize].join();
    const cached = !hasCache ? 1 : urls.has(url) ? CACHED : NOT_CACHED;
    urls.add(url);
    request += 1;
    if (rowsLeft < SHORT_WINDOW_ROWS) shortWindows += 1;
    const again = rowsBefore === readBefore;
    readBefore = rowsBefore;
    const factor = environment(rowsBefore / rows, request, again) * cached * (0.8 + 0.4 * random());
    return rttMs + costMs({ rowsBefore, rowsLeft, resumed, shortWindows }) * factor + 1.5 * random();
  };
  const rowAt = (at: string): number => (rows * (Date.parse(at) - FIRST_MS)) / (LAST_MS - FIRST_MS);
  const atRow = (row: number): string =>
    new Date(FIRST_MS + (row / rows) * (LAST_MS - FIRST_MS)).toISOString();
  return async (walks) =>
    walks.flatMap(({ from, to, pageSize, maxPages, paired }, walk) => {
      const [first, end] = [rowAt(from), rowAt(to)];
      const page = { kind: 'page', walk, status: 200, items: pageSize } as const;
      if (first === end) return [{ ...page, depth: 0, ms: rttMs + 0.5 + 1.5 * random() }];
      const pages = Math.min(maxPages, Math.ceil((end - first) / pageSize));
      return Array.from({ length: pages }, (_, depth): PageRecord => {
        const before = first + depth * pageSize;
        const deep = (): number => ask(before, end - before, depth > 0, pageSize);
        const other = (): number => ask(before, end - before, false, pageSize);
        const order = paired ? pairedAt(depth) : undefined;
        const beforeMs = order === 'deep-last' ? other() : undefined;
        const ms = deep();
        const firstMs = order === 'deep-first' ? other() : beforeMs;
        return { ...page, depth, from: atRow(before), ms, firstMs };
      });
    });
}
