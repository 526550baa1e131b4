/** paging: the cost of a page by depth, page size and window, and the mistake that would explain it. */
import { formatInstant, instant, type Instant, shift } from '../../engine/data/instant.ts';
import { type DepthFinding, depthShape, type WindowPair } from '../estimate/depth.ts';
import { median } from '../estimate/numbers.ts';
import type { Walk } from '../k6/lib/config.ts';
import type { LoadResult } from '../result.ts';
import { type Session, VoidRun } from '../run/session.ts';
import { FLAGS, type Scenario, type ScenarioOptions } from './flags.ts';
import { quantiles } from './words.ts';

interface ReadPage {
  readonly walk: Walk;
  readonly iteration: number;
  readonly depth: number;
  readonly items: number;
  readonly ms: number;
  readonly firstMs?: number | undefined;
  readonly status: number;
}

/** Number of window pairs before and after the database has cached its plans, and of zero-width windows. */
const PAIRS = { early: 4, settled: 12 } as const;
const EMPTY_WALKS = 25;
/**
 * A database may cache a plan after five executions on a connection: each connection gets more short windows than that,
 * concurrently, before long ones are read again.
 */
const PLANNED = { connections: 16, executions: 8 } as const;
const VUS = 4;
const WALK_SECONDS = 600;
const DEEPEST = 4000;

export const paging: Scenario = {
  about: 'what a page costs by depth, page size and window',
  flags: [FLAGS.pageSize(500)],
  run: judgeDepth,
};

type PagingOptions = Pick<ScenarioOptions, 'pageSize' | 'maxPages'>;

async function judgeDepth(session: Session, options: PagingOptions): Promise<Partial<LoadResult>> {
  let depth = await measure(session, options);
  // A single measurement may be noise, so the shape must be reproduced.
  if (!depth.flat) {
    session.tell(`  ${depth.shape}: measured again`);
    const again = await measure(session, options);
    if (again.flat) depth = again;
  }
  const tables = options.maxPages === undefined ? await compareSizes(session) : [];
  const broken = session.findings.some(({ id }) => id === '4.2-r6-next-from');
  return {
    depth,
    held: depth.flat,
    tables: { depth: depth.points, sizes: tables },
    summary: [
      `${depth.rows} rows were traversed, beyond ${depth.emptyMs.toFixed(1)} ms for an empty page; whatever the reason, 1,000 rows further on a page cost ${depth.msPerThousandRows.slope.toFixed(3)} ms (${depth.msPerThousandRows.interval.map((ms) => ms.toFixed(3)).join(' to ')}) more`,
      depth.flat
        ? `flat: deep in a traversal a page costs ${depth.ratios.deep.toFixed(2)} × the first page of a window that begins there`
        : `${depth.shape}: against the first page of a window that begins at the same position a deep page costs ${depth.ratios.deep.toFixed(1)} ×; against a short window a long one costs ${depth.ratios.long.toFixed(1)} ×, ${depth.ratios.settled.toFixed(1)} × after many short ones`,
      ...(depth.likelyCause ? [`look for: ${depth.likelyCause}`] : []),
      ...(broken
        ? ['look for: a cursor that loses digits of testTime, such as one cut to milliseconds']
        : []),
      ...tables.map(
        (row) =>
          `windows of ${row.window}, pages of ${row.pageSize}: ${row.latency}, ${row.itemsPerSecond} items/s, by ${row.pages} of them`,
      ),
    ],
  };
}

async function measure(
  session: Session,
  { pageSize, maxPages = DEEPEST }: PagingOptions,
): Promise<DepthFinding> {
  const { from, to } = session.prepared.base.window;
  // Before any short window, so that no plan for short windows is cached.
  const pages = await walk(session, [{ label: 'all', from, to, pageSize, maxPages, paired: true }], 1);
  const rows = pages.reduce((sum, one) => sum + one.items, 0);
  session.tell(
    `  a walk of ${pages.length} pages, ${rows} screenings: ${quantiles(pages.map(({ ms }) => ms))}`,
  );
  const span = Math.min(1, (1.3 * pageSize) / Math.max(1, rows));
  const once = { pageSize, maxPages: 1 };
  const pairs = async (count: number, settled: boolean): Promise<WindowPair[]> => {
    const walks = slices(from, to, span, count, { label: 'short', ...once }).flatMap((short, index) => {
      const both = [short, { ...short, label: 'long', to }];
      return index % 2 === 0 ? both : both.reverse();
    });
    const read = await walk(session, walks, 1);
    const msOf = (label: string, index: number): number =>
      read.find((one) => one.walk.label === label && one.iteration >> 1 === index)?.ms ?? NaN;
    return Array.from({ length: count }, (_, index) => ({
      shortMs: msOf('short', index),
      longMs: msOf('long', index),
      settled,
    })).filter(({ shortMs, longMs }) => shortMs >= 0 && longMs >= 0);
  };
  const early = await pairs(PAIRS.early, false);
  const { connections, executions } = PLANNED;
  await walk(
    session,
    slices(from, to, span, connections * executions, { label: 'plans', ...once }),
    connections,
  );
  const windows = [...early, ...(await pairs(PAIRS.settled, true))];
  const nothing = { label: 'empty', from: to, to, ...once };
  const empty = await walk(
    session,
    Array.from({ length: EMPTY_WALKS }, () => nothing),
    1,
  );
  return depthShape({ pages, windows, emptyMs: empty.map(({ ms }) => ms), pageSize });
}

/** `count` windows, each a share of the whole range, evenly spread over it. */
function slices(
  from: string,
  to: string,
  share: number,
  count: number,
  rest: Pick<Walk, 'label' | 'pageSize' | 'maxPages'>,
): Walk[] {
  const [first, last] = [instant(from), instant(to)];
  const micros = (last.seconds - first.seconds) * 1_000_000n;
  const at = (part: number): Instant =>
    shift(first, (micros * BigInt(Math.round(part * 1e9))) / 1_000_000_000n);
  return Array.from({ length: count }, (_, i) => {
    const start = ((1 - share) * i) / Math.max(1, count - 1);
    return { ...rest, from: formatInstant(at(start)), to: formatInstant(at(start + share)) };
  });
}

async function walk(session: Session, walks: readonly Walk[], vus: number): Promise<ReadPage[]> {
  const run = await session.run('walks', session.config('walks', { walks, vus, seconds: WALK_SECONDS }));
  const records = run.records.flatMap((one): ReadPage[] => {
    if (one.kind !== 'page') return [];
    const { walk: iteration, ...rest } = one;
    return [{ ...rest, iteration, walk: walks[iteration]! }];
  });
  const failed = records.find(({ status }) => status !== 200);
  if (failed) throw new VoidRun(`a walk ended at page ${failed.depth + 1} with status ${failed.status}`);
  if (records.length === 0) throw new VoidRun('no page was read');
  return records;
}

const SIZES = [10, 100, 1000];
const LENGTHS = [
  { name: 'a thousandth', share: 0.001 },
  { name: 'a fiftieth', share: 0.02 },
  { name: 'a half', share: 0.5 },
];

/** Latency and items per second by page size and window length, with VUS concurrent VUs. */
async function compareSizes(session: Session) {
  const { from, to } = session.prepared.base.window;
  const rows = [];
  for (const { name, share } of LENGTHS) {
    for (const pageSize of SIZES) {
      const startedAt = Date.now();
      const records = await walk(
        session,
        slices(from, to, share, VUS * 2, { label: name, pageSize, maxPages: 10 }),
        VUS,
      );
      const ms = records.map((one) => one.ms);
      const items = records.reduce((sum, one) => sum + one.items, 0);
      rows.push({
        window: name,
        pageSize,
        pages: records.length,
        p50Ms: Number(median(ms).toFixed(2)),
        itemsPerSecond: Math.round((items * 1000) / Math.max(1, ms.reduce((sum, one) => sum + one, 0) / VUS)),
        latency: quantiles(ms),
        wallMs: Date.now() - startedAt,
      });
    }
  }
  return rows;
}
