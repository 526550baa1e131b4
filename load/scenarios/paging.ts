/** paging: the cost of a page by depth, page size and window, and the mistake that would explain it. */
import {
  type DepthFinding,
  depthShape,
  isReversed,
  LEAST_PAGES,
  type WindowPair,
} from '../estimate/depth.ts';
import { linesOf, median, sum } from '../estimate/numbers.ts';
import type { Walk } from '../k6/lib/config.ts';
import type { PageRecord } from '../k6/lib/record.ts';
import type { Window } from '../k6/lib/window.ts';
import type { LoadResult } from '../result.ts';
import type { ScenarioOptions } from '../run/flags.ts';
import { type Scenario, type Session, VoidRun } from '../run/session.ts';
import { quantiles } from './format.ts';

/** Number of window pairs before and after the database has cached its plans, and of zero-width windows. */
const [EARLY_PAIRS, SETTLED_PAIRS, EMPTY_WALKS] = [4, 12, 25];
/** A database may cache a plan after five executions: each connection reads more short windows before long ones. */
const PLANNED = { connections: 16, executions: 8 } as const;
/** Length of a short window, in pages of the traversal: it contains a full one, however unevenly the data are spread. */
const SHORT_PAGES = 2;
const VUS = 4;
const WALK_SECONDS = 600;
const DEEPEST = 4000;
const MEASURED_AGAIN = 2;

export const paging: Scenario = {
  about: 'latency of a page by depth, page size and window',
  flags: { pageSize: 500 },
  run: judgeDepth,
};

async function judgeDepth(session: Session): Promise<Partial<LoadResult>> {
  const read: ReadWalks = (walks, vus) => walk(session, walks, vus);
  const { window } = session.prepared.base;
  const { found: depth, isSame } = await confirmDepth(read, window, session.options, session.tell);
  if (!isSame)
    throw new VoidRun(`measurements differ, the last one says ${depth.shape}; try it on a quiet machine`);
  if (depth.isOpen)
    throw new VoidRun('latencies vary too much to compare pages: use a smaller --page-size, for more pages');
  const sizes = session.options.maxPages === undefined ? await compareSizes(session) : [];
  const broken = session.findings.some(({ id }) => id === '4.2-r6-next-from');
  return {
    depth,
    held: depth.flat,
    tables: { sizes },
    summary: linesOf(
      `traversed ${depth.rows} rows; latency of an empty page ${depth.emptyMs.toFixed(1)} ms; of a page ${depth.points[0]?.p50Ms.toFixed(1)} ms at first, ${depth.points.at(-1)?.p50Ms.toFixed(1)} ms at the end`,
      depth.flat
        ? `flat: a deep page costs ${depth.ratios.deep.toFixed(2)} × the first page of a window that begins at its position`
        : `${depth.shape}: a deep page costs ${depth.ratios.deep.toFixed(1)} × the first page of a window that begins at its position; a long window ${depth.ratios.long.toFixed(1)} × a short one, ${depth.ratios.settled.toFixed(1)} × after many short windows`,
      depth.likelyCause && `likely cause: ${depth.likelyCause}`,
      broken && 'likely cause: a cursor that truncates testTime, such as to milliseconds',
      ...sizes.map(
        (row) =>
          `window of ${row.window} of the data, pages of ${row.pageSize}: ${row.latency}, ${row.itemsPerSecond} items/s, ${row.pages} pages`,
      ),
    ),
  };
}

/** A single measurement may be noise, so a shape must show twice in succession. */
export async function confirmDepth(
  read: ReadWalks,
  window: Window,
  given: Pick<ScenarioOptions, 'pageSize' | 'maxPages'>,
  tell: (line: string) => void = () => {},
) {
  for (let [again, before] = [0, '']; ; again += 1) {
    const options = { ...given, pageSize: Math.max(1, given.pageSize - 2 * again) };
    const found = await measureDepth(read, window, options, tell);
    const isSame = found.flat || found.shape === before;
    if (isSame || again === MEASURED_AGAIN) return { found, isSame };
    before = found.shape;
    tell(`  ${before}: measuring again`);
  }
}

/** Reads the pages of the walks with this many connections; default one. */
export type ReadWalks = (walks: readonly Walk[], vus?: number) => Promise<readonly PageRecord[]>;

async function measureDepth(
  read: ReadWalks,
  window: Window,
  { pageSize, maxPages = DEEPEST }: Pick<ScenarioOptions, 'pageSize' | 'maxPages'>,
  tell: (line: string) => void,
): Promise<DepthFinding & { readonly rows: number }> {
  // Before any short window, so that no plan for short windows is cached.
  const pages = await read([{ ...window, pageSize, maxPages, paired: true }]);
  if (pages.length < LEAST_PAGES)
    throw new VoidRun(`${pages.length} pages are too few to compare depths: use a smaller --page-size`);
  const rows = sum(pages.map(({ items }) => items));
  tell(`  traversed ${pages.length} pages, ${rows} screenings: ${quantiles(pages.map(({ ms }) => ms))}`);
  // Other sizes and windows than before, so that no answer comes from a cache of answers.
  const once = { pageSize: Math.max(1, pageSize - 1), maxPages: 1 };
  const { to } = window;
  const short = (count: number, length: number): Walk[] => {
    const windows = pages.flatMap(({ from }, page) => {
      const end = pages[page + length]?.from;
      return from === undefined || end === undefined || from === end ? [] : [{ from, to: end }];
    });
    return Array.from({ length: count }, (_, index) => ({
      ...once,
      ...windows[Math.floor(((index + 0.5) * windows.length) / count)]!,
    }));
  };
  const pairs = async (count: number, settled: boolean): Promise<WindowPair[]> => {
    // Each in turn is the first to be read.
    const inTurn = <Of>(pair: Of[], index: number): Of[] => (isReversed(index) ? pair.reverse() : pair);
    const seen = await read(
      short(count, SHORT_PAGES).flatMap((one, index) => inTurn([one, { ...one, to }], index)),
    );
    const seenIn = (walk: number): PageRecord | undefined => seen.find((one) => one.walk === walk);
    return Array.from({ length: count }).flatMap((_, index) => {
      const [shorter, longer] = inTurn([seenIn(2 * index), seenIn(2 * index + 1)], index);
      // Items cost time as well: with fewer of them, a short window is no measure of a long one.
      if (!shorter || !longer || shorter.items !== longer.items) return [];
      return [{ shortMs: shorter.ms, longMs: longer.ms, settled }];
    });
  };
  const early = await pairs(EARLY_PAIRS, false);
  const { connections, executions } = PLANNED;
  await read(short(connections * executions, SHORT_PAGES + 1), connections);
  const settled = await pairs(SETTLED_PAIRS, true);
  const nothing = Array.from({ length: EMPTY_WALKS }, () => ({ from: to, to, ...once }));
  const emptyMs = (await read(nothing)).map(({ ms }) => ms);
  return { ...depthShape({ pages, windows: [...early, ...settled], emptyMs }), rows };
}

async function walk(session: Session, walks: readonly Walk[], vus = 1): Promise<PageRecord[]> {
  const run = await session.run('walks', { walks, vus, seconds: WALK_SECONDS });
  const pages = run.records.filter((one) => one.kind === 'page');
  const failed = pages.find(({ status }) => status !== 200);
  if (failed) throw new VoidRun(`a traversal ended at page ${failed.depth + 1} with status ${failed.status}`);
  if (pages.length === 0) throw new VoidRun('no page was read');
  return pages;
}

const SIZES = [10, 100, 1000];
const LENGTHS = { 'a thousandth': 0.001, 'a fiftieth': 0.02, half: 0.5 };

/** Latency and items per second by page size and window length, in windows evenly spread, with VUS concurrent VUs. */
async function compareSizes(session: Session) {
  const { from, to } = session.prepared.base.window;
  const [firstMs, lastMs] = [Date.parse(from), Date.parse(to)];
  const at = (part: number): string => new Date(firstMs + part * (lastMs - firstMs)).toISOString();
  const rows = [];
  for (const [window, share] of Object.entries(LENGTHS))
    for (const pageSize of SIZES) {
      const walks = Array.from({ length: 2 * VUS }, (_, index): Walk => {
        const start = ((1 - share) * index) / (2 * VUS - 1);
        return { pageSize, maxPages: 10, from: at(start), to: at(start + share) };
      });
      const pages = await walk(session, walks, VUS);
      const ms = pages.map((one) => one.ms);
      rows.push({
        window,
        pageSize,
        pages: pages.length,
        p50Ms: Number(median(ms).toFixed(2)),
        itemsPerSecond: Math.round(
          (sum(pages.map(({ items }) => items)) * 1000) / Math.max(1, sum(ms) / VUS),
        ),
        latency: quantiles(ms),
      });
    }
  return rows;
}
