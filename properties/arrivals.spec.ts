/** Properties over generated data, and during ingest. They need `ingest` and clients.scratch. */
import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { endingLater, MAX_PAGE_SIZE, orderedItems, pageOf, type OrderedItem } from '../engine/client/page.ts';
import { formatInstant, instant, isInside, offsetMinutesOf, shift } from '../engine/data/instant.ts';
import { differs } from '../engine/checks/mismatch.ts';
import type { Exchange, RequestOut } from '../engine/client/exchange.ts';
import { isTrusted } from '../engine/checks/next.ts';
import { compareKeys, Oracle } from '../engine/data/oracle.ts';
import type { Kit } from '../engine/run/kit.ts';
import { randomIntegers, seedFor } from '../engine/run/state/covering-array.ts';
import { asServed } from '../engine/run/observers/served-dataset.ts';
import { datasets, GAPS, lineOf, screeningsOf } from './generated-data.ts';
import type { Dataset, Step, Stretch } from './generated-data.ts';
import { assertLaw, violationOf, type Holds } from './law.ts';
import { returnsStoredOnce, walkIsExact, type Entry } from './paging-laws.ts';
import { SupplyUnusable, Untested } from '../engine/errors.ts';

interface Free extends Stretch {
  /** The request that showed it to be empty. */
  readonly asked: RequestOut;
}

interface Scratch {
  readonly tenantId: string;
  /** Stores screenings; they may become visible later. */
  readonly store: (entries: readonly Entry[]) => Promise<void>;
  /**
   * Stores a dataset in an empty range of time and waits, up to a limit, until all of it is visible. Returns it with
   * the precision that the store keeps. Throws if none of it becomes visible in time, or a part of it late.
   */
  readonly fill: (
    dataset: Dataset,
    stretches?: number,
  ) => Promise<{ readonly from: Free; readonly shown: readonly Entry[] }>;
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
  const ingested = await ingestOf(kit);
  const fill: Scratch['fill'] = async (dataset, stretches = STRETCHES) => {
    const fillOne = async (): ReturnType<Scratch['fill']> => {
      const from = await freshStretch(kit, tenantId, ingested.isOfPast ? ENDED : stretches);
      const stored = screeningsOf(dataset, from);
      await store(stored);
      return { from, shown: await untilShown(kit, tenantId, stored) };
    };
    return fillOne().catch((error: unknown) => {
      if (!(error instanceof SupplyUnusable)) throw error;
      // A concurrent run with the same seed may have filled the same range since the check.
      if (!ingested.isOfPast) Object.assign(ingested, { isOfPast: true, gaveUp: false });
      return fillOne();
    });
  };
  return { tenantId, store, fill };
}

/** Three days each, from 1971; a dataset spans at most sixty hours. */
const STRETCHES = 28_000;
/** Of these, the ones that ended long ago. */
const ENDED = 6_000;
const STRETCH_SECONDS = 3n * 86_400n;
const IDS_A_STRETCH = 180_000_000n;
/** After this many occupied ranges the tenant counts as full. */
const DRAWS = 50;

/**
 * A range in which the scratch tenant holds nothing: earlier runs may have left data, and concurrent runs may store
 * some. Drawn with the run's seed, and where that one is occupied by chance. Throws Untested if all are occupied.
 */
async function freshStretch(kit: Kit, tenantId: string, stretches: number): Promise<Free> {
  const pick = await kit.once('stretches', async () =>
    randomIntegers(seedFor(kit.options.seed, 'stretches')),
  );
  for (let drawn = 0; drawn < DRAWS; drawn++) {
    // Earlier runs with the same seed have filled its ranges.
    const number = BigInt(drawn === 0 ? pick(stretches) : randomInt(stretches));
    const at = shift(instant('1971-01-01T00:00:00Z'), number * STRETCH_SECONDS, 0);
    const [from, to] = [shift(at, -2n, 0), shift(at, STRETCH_SECONDS - 2n, 0)];
    const query = { from: formatInstant(from), to: formatInstant(to), pageSize: 1 };
    const asked = kit.request(tenantId, query, 'scratch');
    const exchange = await kit.send(asked, { unjudged: true });
    // The traversal reports an error, or a screening outside the window.
    const isTaken = orderedItems(exchange).some(({ at }) => isInside(at, { from, to }));
    if (!isTaken) return { at, id: 1_000_000_000n + number * IDS_A_STRETCH, asked };
  }
  throw new Untested(
    `the scratch tenant holds screenings in each of ${DRAWS} ranges of three days that were tried; empty it`,
  );
}

const LONGEST_LAG_MS = 10_000;
/** What is still missing then is lost, if another part shows. */
const LOST_MS = 60_000;
const LAG_POLL_MS = 100;
const STALE_POLL_MS = 1_000;

/** What a run has learnt about ingest. */
interface Ingest {
  /** Something stored has become visible. */
  works: boolean;
  /** Something stored never became visible: it is not waited for again until something has. */
  gaveUp: boolean;
  /** A part of what was stored never showed: a further one is lost after LONGEST_LAG_MS. */
  losesParts: boolean;
  /** A walk missed a stored screening: a replica that lags may lack what another one returned. */
  mayLag: boolean;
  /** Ingest failed, or nothing that it stored showed: it may refuse screenings of the future. */
  isOfPast: boolean;
}

const ingestOf = (kit: Kit): Promise<Ingest> =>
  kit.once('ingest', async () => ({
    works: false,
    gaveUp: false,
    losesParts: false,
    mayLag: false,
    isOfPast: false,
  }));

/**
 * After this many consecutive answers with everything stored, spread over this time, every replica is assumed to have
 * it: a balancer may leave one out for some time.
 */
const COMPLETE_ANSWERS = 14;
const COMPLETE_MS = 5_000;

/** Repeats the first case that violates the property, since replicas may lag; from then on `fill` waits for all of them. */
const whereReplicasLag =
  <Case>(kit: Kit, holds: Holds<Case>): Holds<Case> =>
  async (example) => {
    const violation = await holds(example);
    const ingest = await ingestOf(kit);
    if (!violation || ingest.mayLag) return violation;
    ingest.mayLag = true;
    return holds(example);
  };

/** The items of a page and, until `wanted` are shown, of the pages after it, since a page may be short. */
async function itemsFrom(kit: Kit, page: Exchange, wanted: readonly Entry[]): Promise<OrderedItem[]> {
  const items = orderedItems(page);
  const ids = new Set<bigint>();
  for (let { nextUrl } = pageOf(page), pages = 0; ; pages++) {
    for (const { id } of items) ids.add(id);
    const isShown = wanted.every(({ id }) => ids.has(id));
    if (isShown || pages > wanted.length || !nextUrl || !isTrusted(nextUrl, kit.target)) return items;
    const next = await kit.send(kit.requestTo(nextUrl, 'scratch'), { unjudged: true });
    items.push(...orderedItems(next));
    ({ nextUrl } = pageOf(next));
  }
}

/** Ingest may be asynchronous: data appears some time after it was written. */
async function untilShown(kit: Kit, tenantId: string, entries: readonly Entry[]): Promise<readonly Entry[]> {
  const window = { ...around([...entries].sort(compareKeys)), pageSize: MAX_PAGE_SIZE };
  const asked = kit.request(tenantId, window, 'scratch');
  const began = kit.clock.now();
  const ingest = await ingestOf(kit);
  const wanted = ingest.mayLag ? COMPLETE_ANSWERS : 1;
  let complete = 0;
  let lackedMs = 0;
  for (let looks = 0; ; looks++) {
    const request = { ...asked, url: endingLater(asked.url, looks) };
    const exchange = await kit.send(request, { unjudged: true });
    const items = await itemsFrom(kit, exchange, entries);
    const ids = new Set(items.map(({ id }) => id));
    const missing = entries.filter(({ id }) => !ids.has(id)).length;
    if (missing < entries.length) ingest.works = true;
    complete = missing === 0 ? complete + 1 : 0;
    const waitedMs = kit.clock.now() - began;
    // A complete answer may have waited for a rate limit.
    if (missing > 0) lackedMs = waitedMs;
    const isLate = lackedMs > kit.pollingMs(LONGEST_LAG_MS);
    if (complete === 1 && isLate)
      throw new SupplyUnusable(`ingest: what it stored shows only after ${Math.round(waitedMs / 1000)} s`);
    if (complete > 0 && complete < wanted) {
      await kit.clock.sleep(kit.pollingMs(COMPLETE_MS / (COMPLETE_ANSWERS - 1)), kit.options.signal);
      continue;
    }
    // The walk reports errors and incomplete pages.
    const isShort = pageOf(exchange).nextUrl !== undefined && !ingest.mayLag;
    if (missing === 0 || exchange.status !== 200 || isShort) {
      if (missing === 0 && looks >= wanted) kit.ledger.raiseTo('ingestLagMs', waitedMs);
      return asServed(entries, items);
    }
    const inVain = ingest.gaveUp && !ingest.works;
    if (missing === entries.length && (inVain || isLate)) {
      ingest.gaveUp = true;
      const limit = kit.pollingMs(LONGEST_LAG_MS) / 1000;
      throw new SupplyUnusable(`ingest: nothing that it stored shows within ${limit} s`);
    }
    if (isLate && (ingest.losesParts || waitedMs > kit.pollingMs(LOST_MS))) {
      ingest.losesParts = true;
      return asServed(entries, items);
    }
    await kit.clock.sleep(isLate ? STALE_POLL_MS : LAG_POLL_MS);
  }
}

test(
  'walks over generated data return it once and in order',
  about('4.2-r5-exactly-once', { access: 'scratch', isSupplement: true }),
  async ({ kit, check }) => {
    const { tenantId, fill } = await scratch(kit);
    await assertLaw(kit, check, {
      cases: datasets,
      holds: whereReplicasLag(kit, async (dataset) => {
        const { shown } = await fill(dataset);
        // Before all replicas have shown it, only the walk as a whole is judged.
        const stored = shown.map((entry) => ({ ...entry, testTime: entry.testTime! }));
        kit.knowledge.set(tenantId, (await ingestOf(kit)).mayLag ? Oracle.of(stored) : new Oracle(false));
        const expected = [...shown].sort(compareKeys);
        const query = { ...around(expected), pageSize: dataset.pageSize };
        return violationOf(
          kit,
          `the ${expected.length} screenings that were stored, once and in order`,
          (traverse) => walkIsExact(traverse, query, expected),
          'scratch',
        );
      }),
      share: 0.35,
      script: (dataset) => [sayDataset(dataset), `pageSize ${dataset.pageSize}`],
    });
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

test(
  'a traversal returns what was stored before it once, while more data arrives',
  about('4.2-r5-exactly-once', { access: 'scratch', isSupplement: true }),
  async ({ kit, check }) => {
    const { tenantId, store, fill } = await scratch(kit);
    await assertLaw(kit, check, {
      cases: fc
        .tuple(
          fc.noBias(fc.array(lates, { minLength: 1, maxLength: 3, size: 'max' })),
          datasets.filter(({ steps }) => steps.length >= 3),
        )
        .map(([late, dataset]) => ({ ...dataset, pageSize: Math.min(4, dataset.pageSize), late })),
      holds: whereReplicasLag(kit, async (example) => {
        const { from, shown } = await fill(example);
        const ordered = [...shown].sort(compareKeys);
        kit.knowledge.set(tenantId, new Oracle(false));
        const arrive = async (page: number): Promise<void> => {
          const now = example.late.filter((late) => late.page === page);
          if (now.length === 0) return;
          const idOf = (index: number): bigint => from.id + 4_000n + BigInt(page * 10 + index);
          await store(now.map((late, i) => beside(ordered[placeOf(late, example)]!, late.gap, idOf(i))));
        };
        const query = { ...around(ordered), pageSize: example.pageSize };
        return violationOf(
          kit,
          `the ${ordered.length} screenings that were there before the walk, once and in order`,
          (traverse) => returnsStoredOnce(traverse, query, ordered, arrive),
          'scratch',
        );
      }),
      share: 0.3,
      script: (example) => [
        sayDataset(example),
        `pageSize ${example.pageSize}`,
        ...example.late.map(
          (late) =>
            `after page ${late.page} one more arrives, ${late.gap === 'tie' ? 'at the instant of' : `a ${late.gap} after`} item number ${placeOf(late, example) + 1}`,
        ),
      ],
    });
  },
);

/** A correct cache keeps answers for seconds. */
const LONGEST_CACHED_MS = 60_000;

test(
  'a window that was empty returns what was stored since',
  about('4.2-window', { access: 'scratch', isSupplement: true }),
  async ({ kit, check }) => {
    const { tenantId, store, fill } = await scratch(kit);
    const steps = [{ gap: 'second', offsetMinutes: 0, idStep: 1 }] as const;
    // A server may keep the pages of windows that have ended.
    const { from, shown } = await fill({ steps, pageSize: 1, shuffle: 1 }, ENDED);
    kit.ledger.laws.set(check.title, 1);
    /** Whether the answer changes within the time for which a cache may keep it: `item` is new before `held`. */
    const showsNew = (item: Entry, held: Entry | undefined): Promise<boolean> => {
      const beganMs = kit.clock.now();
      const cause = `a stale answer with ${held ? 'a screening' : 'no items'}`;
      return kit.checkAll({ id: '4.2-window', cause }, async () => {
        for (;;) {
          const exchange = await kit.send(from.asked, { unjudged: true });
          const { items, nextUrl } = pageOf(exchange);
          // Of two screenings a page of one has a next.
          const isCut = held !== undefined && nextUrl === undefined;
          const isStale = isCut || (held ? items?.[0]?.id === held.id : items?.length === 0);
          if (exchange.status !== 200 || !items || !isStale) return undefined;
          const waitedMs = kit.clock.now() - beganMs;
          if (waitedMs > kit.pollingMs(LONGEST_CACHED_MS)) {
            const another = kit.request(tenantId, around([item]), 'scratch');
            const others = orderedItems(await kit.send(another, { unjudged: true }));
            if (!others.some(({ id }) => id === item.id)) return undefined;
            const stored = `item ${item.id} at ${item.testTime}, which another window returns`;
            const got = `${items[0] ? `item ${items[0].id}` : 'no items'}${isCut ? ' and no next' : ''}`;
            const received = `${got}, as before it was stored ${Math.round(waitedMs / 1000)} s ago`;
            const script = [
              held ? 'a window with an item' : 'a window without items',
              held ? 'another one is stored before it' : 'an item is stored in it',
              'the same window again',
            ];
            return { ...differs(stored, received), exchange, counterexample: { law: check.title, script } };
          }
          await kit.clock.sleep(STALE_POLL_MS, kit.options.signal);
        }
      });
    };
    const [first] = shown;
    if (!first || !(await showsNew(first, undefined))) return;
    let held = first;
    // The window is requested with pageSize 1, so an earlier screening must replace the first one on the page; and
    // once more, since a server may keep pages that have a next.
    for (const seconds of [1n, 2n]) {
      const testTime = formatInstant(shift(first.at, -seconds, 0));
      const late: Entry = { id: first.id + seconds, testTime, at: instant(testTime) };
      await store([late]);
      const [earlier] = await untilShown(kit, tenantId, [late]);
      if (!earlier || !(await showsNew(earlier, held))) return;
      held = earlier;
    }
  },
);

function placeOf({ page, passed, place }: Late, { steps, pageSize }: Dataset): number {
  return place % Math.min(steps.length, passed ? page * pageSize : Infinity);
}

function beside({ at, testTime }: Entry, gap: Step['gap'], id: bigint): Entry {
  const moved = formatInstant(shift(at, GAPS[gap], 9), { offsetMinutes: offsetMinutesOf(testTime!) });
  return { id, testTime: moved, at: instant(moved) };
}

/** A window around the items, with at least one second of margin on both sides. */
const around = (ordered: readonly Entry[]): { from: string; to: string } => ({
  from: formatInstant(shift(ordered[0]!.at, -1n, 0)),
  to: formatInstant(shift(ordered.at(-1)!.at, 2n, 0)),
});

const sayDataset = ({ steps }: Dataset): string =>
  `${steps.length} screenings, each after the one before by: ${steps.map(({ gap }) => gap).join(', ')}`;
