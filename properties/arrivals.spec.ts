/** Properties over generated data, and during ingest. They need `ingest` and clients.scratch. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { MAX_PAGE_SIZE, orderedItems, pageOf, pageUrl } from '../engine/client/page.ts';
import { formatInstant, instant, offsetMinutesOf, shift } from '../engine/data/instant.ts';
import { compareKeys, Oracle } from '../engine/data/oracle.ts';
import type { Kit } from '../engine/run/kit.ts';
import { asServed } from '../engine/run/observers/served-dataset.ts';
import { Shrinking } from './cases.ts';
import {
  datasets,
  freshStretch,
  GAPS,
  lineOf,
  screeningsOf,
  uniqueIds,
  type Dataset,
  type Step,
  type Stretch,
} from './generated-data.ts';
import { checkLaw, ORDERING, violationOf, type Entry } from './law.ts';
import { returnsStoredOnce, walkIsExact } from './paging-laws.ts';
import { SupplyUnusable, Untested } from '../engine/errors.ts';

interface Scratch {
  readonly tenantId: string;
  /** Stores screenings; they may become visible later. */
  readonly store: (entries: readonly Entry[]) => Promise<void>;
  /**
   * Stores a dataset in an empty range of time and waits, up to a limit, until all of it is visible. Returns the
   * visible part, with the precision that the store keeps. Throws if none of it becomes visible.
   */
  readonly fill: (dataset: Dataset) => Promise<{ readonly from: Stretch; readonly shown: readonly Entry[] }>;
}

async function scratch(kit: Kit): Promise<Scratch> {
  const { ingest } = kit.target;
  if (!ingest || !kit.target.clients.scratch) {
    throw new Untested(
      'supply ingest (a command that stores dataset lines) and clients.scratch (a tenant to fill)',
    );
  }
  const tenantId = await kit.tenantOf('scratch');
  const store = (entries: readonly Entry[]): Promise<void> =>
    ingest(entries.map((entry) => lineOf(tenantId, entry))).catch((error: Error) => {
      throw new SupplyUnusable(`ingest: ${error.message}`);
    });
  const fill: Scratch['fill'] = async (dataset) => {
    const storeSomewhere = async (): Promise<{ from: Stretch; stored: Entry[] }> => {
      const from = await freshStretch(kit, tenantId);
      const stored = screeningsOf(dataset, from);
      await store(stored);
      return { from, stored };
    };
    // A concurrent run with the same seed may have filled the same range since the check.
    const { from, stored } = await storeSomewhere().catch(storeSomewhere);
    return { from, shown: await untilShown(kit, tenantId, stored) };
  };
  return { tenantId, store, fill };
}

const LONGEST_LAG_MS = 10_000;
const LAG_POLL_MS = 100;
/** Runs in which something stored never became visible: they do not wait again. */
const gaveUpWaiting = new WeakSet<Kit>();
/** Runs in which something stored has become visible: ingest works. */
const ingestWorks = new WeakSet<Kit>();

const nothingShows = (kit: Kit): SupplyUnusable =>
  new SupplyUnusable(`ingest: nothing that it stored shows within ${kit.pollingMs(LONGEST_LAG_MS) / 1000} s`);

/** Ingest may be asynchronous: data appears some time after it was written. */
async function untilShown(kit: Kit, tenantId: string, entries: readonly Entry[]): Promise<readonly Entry[]> {
  const query = { ...around([...entries].sort(compareKeys)), pageSize: MAX_PAGE_SIZE };
  const request = {
    ...kit.request(tenantId, '', { kind: 'client', client: 'scratch' }),
    url: pageUrl(kit.target.baseUrl, tenantId, query),
  };
  const began = kit.clock.now();
  for (let looks = 0; ; looks++) {
    const exchange = await kit.client.send(request, { unjudged: true });
    const items = orderedItems(exchange);
    const ids = new Set(items.map(({ id }) => id));
    const missing = entries.filter(({ id }) => !ids.has(id)).length;
    if (missing < entries.length) ingestWorks.add(kit);
    const inVain = gaveUpWaiting.has(kit) && exchange.status === 200;
    if (inVain && !ingestWorks.has(kit)) throw nothingShows(kit);
    // The walk reports errors and incomplete pages.
    if (missing === 0 || exchange.status !== 200 || pageOf(exchange).nextUrl || gaveUpWaiting.has(kit)) {
      if (missing === 0 && looks > 0) kit.ledger.raiseTo('ingestLagMs', kit.clock.now() - began);
      return asServed(entries, items);
    }
    if (kit.clock.now() - began > kit.pollingMs(LONGEST_LAG_MS)) {
      gaveUpWaiting.add(kit);
      if (missing < entries.length) return asServed(entries, items);
      throw nothingShows(kit);
    }
    await kit.clock.sleep(LAG_POLL_MS);
  }
}

test(
  'walks over generated data return it once and in order',
  about('4.2-r5-exactly-once', { access: 'scratch', isSupplement: true }),
  async ({ kit, title }) => {
    await scratch(kit);
    const cases = datasets.filter(uniqueIds);
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-r5-exactly-once',
        title,
        share: 0.35,
        script: (dataset) => [sayDataset(dataset), `pageSize ${dataset.pageSize}`],
      },
      async (dataset) => {
        const { tenantId, fill } = await scratch(kit);
        const { shown: entries } = await fill(dataset);
        kit.learn(tenantId, oracleOf(entries));
        const expected = [...entries].sort(compareKeys);
        const query = { ...around(expected), pageSize: dataset.pageSize };
        return violationOf(
          kit,
          `the ${expected.length} screenings that were stored, once and in order`,
          (fetchPage) => walkIsExact(fetchPage, query, expected, ORDERING),
          'scratch',
        );
      },
    );
  },
);

interface Late {
  /** The number of pages after which it is stored. */
  readonly page: number;
  /** Whether it is placed next to an item that the traversal has already passed, or next to any item. */
  readonly passed: boolean;
  readonly place: number;
  readonly gap: Step['gap'];
}

const lates: fc.Arbitrary<Late> = fc.record({
  page: fc.integer({ min: 1, max: 4 }),
  passed: fc.boolean(),
  place: fc.nat({ max: 100 }),
  gap: fc.constantFrom('tie', 'microsecond', 'second'),
});

/** Drops one arrival at a time, then moves arrivals to an earlier page, which needs fewer screenings. */
function* simplerLates(all: readonly Late[]): Generator<Late[]> {
  for (let i = 0; i < all.length && all.length > 1; i++) yield all.filter((_, place) => place !== i);
  for (const [i, late] of all.entries()) {
    if (late.page > 1) yield all.map((other, place) => (place === i ? { ...late, page: 1 } : other));
  }
}

test(
  'a traversal returns what was stored before it once, while more data arrives',
  about('4.2-r5-exactly-once', { access: 'scratch', isSupplement: true }),
  async ({ kit, title }) => {
    await scratch(kit);
    const cases = fc
      .tuple(
        new Shrinking(fc.array(lates, { minLength: 1, maxLength: 3, size: 'max' }), simplerLates),
        datasets.filter((dataset) => dataset.steps.length >= 3 && uniqueIds(dataset)),
      )
      .map(([late, dataset]) => ({ ...dataset, pageSize: Math.min(4, dataset.pageSize), late }));
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-r5-exactly-once',
        title,
        share: 0.3,
        script: (example) => [
          sayDataset(example),
          `pageSize ${example.pageSize}`,
          ...example.late.map(
            (late) =>
              `after page ${late.page} one more arrives, ${late.gap === 'tie' ? 'at the instant of' : `a ${late.gap} after`} item number ${placeOf(late, example) + 1}`,
          ),
        ],
      },
      async (example) => {
        const { tenantId, store, fill } = await scratch(kit);
        const { from, shown } = await fill(example);
        const ordered = [...shown].sort(compareKeys);
        kit.learn(tenantId, new Oracle(false));
        const arrive = async (page: number): Promise<void> => {
          const now = example.late.filter((late) => late.page === page);
          if (now.length === 0) return;
          await store(
            now.map((late, i) =>
              beside(ordered[placeOf(late, example)]!, late.gap, from.id + 4_000n + BigInt(page * 10 + i)),
            ),
          );
        };
        return violationOf(
          kit,
          `the ${ordered.length} screenings that were there before the walk, once and in order`,
          (fetchPage) =>
            returnsStoredOnce(
              fetchPage,
              { ...around(ordered), pageSize: example.pageSize },
              ordered,
              arrive,
              ORDERING,
            ),
          'scratch',
        );
      },
    );
  },
);

function placeOf({ page, passed, place }: Late, { steps, pageSize }: Dataset): number {
  return place % Math.min(steps.length, passed ? page * pageSize : Infinity);
}

function beside({ at, testTime }: Entry, gap: Step['gap'], id: bigint): Entry {
  const moved = formatInstant(shift(at, GAPS[gap], 9), { offsetMinutes: offsetMinutesOf(testTime!) });
  return { id, testTime: moved, at: instant(moved) };
}

function oracleOf(entries: readonly Entry[]): Oracle {
  const known = new Oracle(true);
  for (const entry of entries) known.add({ ...entry, testTime: entry.testTime! }, 0);
  return known;
}

/** A window around the items, with at least one second of margin on both sides. */
const around = (ordered: readonly Entry[]): { from: string; to: string } => ({
  from: formatInstant(shift(ordered[0]!.at, -1n, 0)),
  to: formatInstant(shift(ordered.at(-1)!.at, 2n, 0)),
});

const sayDataset = ({ steps }: Dataset): string =>
  `${steps.length} screenings, each after the one before by: ${steps.map(({ gap }) => gap).join(', ')}`;
