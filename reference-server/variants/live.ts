/** Tenants whose screenings change during a run, tenants with screenings of earlier or other runs, and a huge tie. */
import { GENERATED_WINDOW } from '../../fixtures/dataset/generator.ts';
import {
  compareInstants,
  cutText,
  formatInstant,
  instant,
  sameInstant,
  shift,
} from '../../engine/data/instant.ts';
import type { Instant } from '../../engine/data/instant.ts';
import type { Clock } from '../../engine/clock.ts';
import { parseScreening } from '../../engine/data/dataset.ts';
import type { Target } from '../../engine/target/target.ts';
import { both, counting, nextQuery, queryOf, storedPages, withRequestValue } from '../run/alter.ts';
import { EVERYTHING, merged, retimed, screening, withAdded } from '../faults/rows.ts';
import type { PageQuery, StoredScreening } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import { cache } from './health.ts';
import { variants, type Variant } from './variant.ts';

const EPOCH = instant('1970-01-01T00:00:00Z');
const FIRST_ID = 8_000_000_000_000n;
const PRESENT = instant('2026-11-26T12:00:00Z');

/** The testTime of a screening that arrives at a moment. */
type Performed = (arrivedMs: number, index: number) => Instant;
const justNow: Performed = (arrivedMs) => shift(EPOCH, BigInt(arrivedMs), 3);
/** Offline devices deliver late: anywhere in the window, and every second time on its busiest day. */
const MICROS_A_DAY = 86_400n * 1_000_000n;
const longAgo: Performed = (_, index) => {
  const [start, days] = index % 2 === 0 ? ['2024-06-15T00:00:00Z', 1n] : [GENERATED_WINDOW.from, 365n];
  return shift(instant(start), (BigInt(index + 1) * 7_919_000_003n) % (days * MICROS_A_DAY), 6);
};

/** Then no more arrive: on a loaded machine, answers would take ever longer. */
const MOST_ARRIVALS = 2_000;

const arrivals = (everyMs: number, performed: Performed) => () => {
  const since = Date.now() - everyMs / 2;
  return ({ tenantId }: PageQuery, untilMs = Date.now()): StoredScreening[] =>
    tenantId === TENANTS.scratch
      ? []
      : Array.from({ length: Math.min(MOST_ARRIVALS, Math.floor((untilMs - since) / everyMs)) }, (_, index) =>
          screening(tenantId, FIRST_ID + BigInt(index), performed(since + (index + 1) * everyMs, index)),
        );
};

/** A screening of the present moment arrives every `everyMs` of a clock, and a request takes `latencyMs` of it. */
export const arrivingFarAway = (everyMs: number, latencyMs: number, clock: Clock): ServerOptions =>
  both(
    withAdded(() => {
      const sinceMs = clock.now() - everyMs / 2;
      return ({ tenantId }) =>
        Array.from({ length: Math.floor((clock.now() - sinceMs) / everyMs) }, (_, index) =>
          screening(tenantId, FIRST_ID + BigInt(index), justNow(sinceMs + (index + 1) * everyMs, index)),
        );
    }),
    counting(async (_, request, next) => {
      await clock.sleep(latencyMs);
      return next(request);
    }),
  );

/** A screening of the present arrives with every nth request. */
export const arrivingEvery = (requests: number): ServerOptions =>
  withAdded(() => {
    let asked = 0;
    return ({ tenantId }) => {
      const count = tenantId === TENANTS.scratch ? 0 : Math.floor(++asked / requests);
      return Array.from({ length: count }, (_, index) =>
        screening(tenantId, FIRST_ID + BigInt(index), shift(PRESENT, BigInt(index), 0)),
      );
    };
  });

/** No dataset and no complete capture of events can exist for a tenant that changes. */
const live = (name: string, server: ServerOptions): Variant => ({ name, server, target: withoutRecords });

export function withoutRecords(target: Target): Target {
  const { dataset: _, secondDataset: __, events: ___, window: ____, ...others } = target;
  return others;
}

const REPLICA_LAG_MS = 300;

/** Two replicas in turn; the second one shows later what arrives. */
const laggingArrivals = (everyMs: number): ServerOptions =>
  storedPages(() => {
    const arrived = arrivals(everyMs, longAgo)();
    let asked = 0;
    return async (query, ask) =>
      merged(query, ask, arrived(query, Date.now() - (asked++ % 2) * REPLICA_LAG_MS));
  });

/** A balancer leaves out an instance for some time after it has failed, for example in a rolling restart. */
const LEFT_OUT_ANSWERS = 16;

/**
 * Two replicas in turn; the second one shows later what is stored after the first request, and every second time it is
 * left out of the answers after that. Only in the scratch tenant.
 */
const replicas = (leftOutAnswers = 0): ServerOptions =>
  storedPages(() => {
    let firstShownMs: Map<bigint, number> | undefined;
    let asked = 0;
    let [stored, leftOutUntil] = [0, 0];
    return async (query, ask) => {
      if (query.tenantId !== TENANTS.scratch) return ask(query);
      if (!firstShownMs) {
        const { items } = await ask({ ...EVERYTHING, tenantId: query.tenantId });
        firstShownMs = new Map(items.map(({ id }) => [id, 0]));
      }
      const shownMs = firstShownMs;
      const all = await ask({ ...query, pageSize: 1000 });
      const now = Date.now();
      const added = all.items.filter(({ id }) => !shownMs.has(id));
      for (const { id } of added) shownMs.set(id, now);
      if (added.length > 0) leftOutUntil = asked + (stored++ % 2) * leftOutAnswers;
      const lagMs = asked++ % 2 === 1 && asked > leftOutUntil ? REPLICA_LAG_MS : 0;
      const items = all.items.filter(({ id }) => now - shownMs.get(id)! >= lagMs);
      return { items: items.slice(0, query.pageSize), more: all.more || items.length > query.pageSize };
    };
  });

/** A cursor with the time of the first page: later pages show the screenings of that time. */
const snapshots = (everyMs: number): ServerOptions =>
  withRequestValue(
    (request) => Number(queryOf(request).get('as_of') ?? Date.now()),
    (current) => ({
      ...storedPages(() => {
        const arrived = arrivals(everyMs, longAgo)();
        return async (query, ask) => merged(query, ask, arrived(query, current()));
      }),
      ...nextQuery((query) => query.set('as_of', String(current()))),
    }),
  );

/** Deletes one screening of this many per second, chosen by id, so that all answers are consistent. */
const ONE_IN = 400n;
const MAX_DELETED = 200;
/** After this many requests a retention period ends, which deletes every screening before KEPT_FROM in one step. */
const PURGED_AFTER = 700;
const KEPT_FROM = instant('2024-08-01T00:00:00Z');

function deleting(): ServerOptions {
  return storedPages(() => {
    const since = Date.now();
    let asked = 0;
    return async (query, ask) => {
      if (query.tenantId !== TENANTS.primary) return ask(query);
      const { pageSize } = query;
      const isPurged = ++asked > PURGED_AFTER && compareInstants(query.from, KEPT_FROM) < 0;
      const kept = isPurged ? { from: KEPT_FROM, fromId: undefined } : {};
      const { items, more } = await ask({ ...query, ...kept, pageSize: pageSize + MAX_DELETED });
      const seconds = BigInt(Math.floor((Date.now() - since) / 1000));
      const left = items.filter(({ id }) => id % ONE_IN >= seconds);
      return { items: left.slice(0, pageSize), more: more || left.length > pageSize };
    };
  });
}

const RETAINED = 1_500;
const DELETED_EVERY_MS = 200;
const DELETED_LATER_MS = 800;

/**
 * The tenant has two screenings per minute of test time. A retention period deletes the oldest one again and again, and
 * the second of two replicas in turn deletes it later.
 */
function retaining(): ServerOptions {
  return storedPages(() => {
    const since = Date.now();
    let asked = 0;
    const all = Array.from({ length: RETAINED }, (_, index) =>
      screening(TENANTS.primary, FIRST_ID + BigInt(index), shift(KEPT_FROM, BigInt(index >> 1) * 60n, 0)),
    );
    return async (query, ask) => {
      if (query.tenantId !== TENANTS.primary) return ask(query);
      const lagMs = (asked++ % 2) * DELETED_LATER_MS;
      const left = all.slice(Math.max(0, Math.floor((Date.now() - since - lagMs) / DELETED_EVERY_MS)));
      return merged(query, async () => ({ items: [], more: false }), left);
    };
  });
}

const CORRECTED_AFTER_MS = 1_500;
const CORRECTED = 30;

/** Corrects the testTimes of some screenings, once, because a device's clock was wrong; they are absent for some time. */
function correcting(absentMs = 0): ServerOptions {
  return storedPages(() => {
    const since = Date.now();
    let corrected: readonly StoredScreening[] | undefined;
    return async (query, ask) => {
      if (query.tenantId !== TENANTS.primary || Date.now() - since < CORRECTED_AFTER_MS) return ask(query);
      if (!corrected) {
        const { items } = await ask({ ...EVERYTHING, tenantId: query.tenantId, pageSize: 100 });
        corrected = items
          .slice(-CORRECTED)
          .map((item) => retimed(item, formatInstant(shift(instant(item.testTime), 4_711n, 0))));
      }
      const ids = new Set(corrected.map(({ id }) => id));
      const isBack = Date.now() - since >= CORRECTED_AFTER_MS + absentMs;
      const askBeyond: typeof ask = (all) => ask({ ...all, pageSize: all.pageSize + CORRECTED });
      return merged(query, askBeyond, isBack ? corrected : [], (item) => ids.has(item.id));
    };
  });
}

const DAYS_PER_INTERVAL = 3n;
const DAY = 86_400n;
const DAYS = 84_000n;
const KEPT_SINCE = instant('1971-01-01T00:00:00Z');

const keptScratch = withAdded(() => ({ tenantId, from, to, pageSize }) => {
  if (tenantId !== TENANTS.scratch) return [];
  const dayOf = (at: Instant): bigint => (at.seconds - KEPT_SINCE.seconds) / DAY;
  const old: StoredScreening[] = [];
  const [first, last] = [dayOf(from), dayOf(to)];
  for (let day = first > 0n ? first : 0n; day <= last && day < DAYS && old.length <= pageSize; day++) {
    if ((day / DAYS_PER_INTERVAL) % 2n === 0n) continue;
    old.push(screening(tenantId, FIRST_ID + day, shift(KEPT_SINCE, day * DAY + 1_800n, 0)));
  }
  return old;
});

const shortScratch = storedPages(() => (query, ask) => {
  const isScratch = query.tenantId === TENANTS.scratch;
  return ask({ ...query, pageSize: isScratch ? Math.min(2, query.pageSize) : query.pageSize });
});

const IMPORTED_AT = instant('2024-01-01T00:00:00Z');

/** An import of dates without times, before all other screenings. */
const hugeTie = (count: number): ServerOptions =>
  withAdded(() => {
    const tie = Array.from({ length: count }, (_, index) =>
      screening(TENANTS.primary, FIRST_ID + BigInt(index), IMPORTED_AT),
    );
    return ({ tenantId, from, fromId, pageSize }) => {
      if (tenantId !== TENANTS.primary || compareInstants(from, IMPORTED_AT) > 0) return [];
      const isInside = sameInstant(from, IMPORTED_AT) && fromId !== undefined && fromId >= FIRST_ID;
      const start = isInside ? Number(fromId - FIRST_ID) + 1 : 0;
      return tie.slice(start, start + pageSize + 1);
    };
  });

export const LIVE: readonly Variant[] = [
  live(
    'a retention period deletes the oldest screening every 200 ms, 0.8 s later on one of two replicas',
    retaining(),
  ),
  live('a screening of the present moment arrives every 150 ms', withAdded(arrivals(150, justNow))),
  ...[1, 4, 30].map((s) =>
    live(`a screening of the present moment arrives every ${s} s`, withAdded(arrivals(s * 1_000, justNow))),
  ),
  live('a screening arrives late every 50 ms', withAdded(arrivals(50, longAgo))),
  live('a screening arrives late every 2 s', withAdded(arrivals(2_000, longAgo))),
  live(
    'a cache of two seconds by URL and token, while a screening arrives late every 2 s',
    both(withAdded(arrivals(2_000, longAgo)), cache(false).server),
  ),
  live('a traversal shows what was there when it began, while screenings arrive late', snapshots(50)),
  live('one of two replicas shows what arrives late 0.3 s after the other', laggingArrivals(100)),
  live('the testTimes of thirty screenings are corrected once', correcting()),
  live('thirty screenings are deleted, and stored 0.7 s later with other testTimes', correcting(700)),
  live('screenings are deleted during the run, and half of them in one step', deleting()),
  live(
    'a cache of eight seconds by URL and token, while screenings are deleted',
    both(deleting(), cache(false, 8_000).server),
  ),
  live('12,000 screenings of one instant before the others, and no dataset', hugeTie(12_000)),
  { name: 'one of two replicas shows what is stored 0.3 s after the other', server: replicas() },
  {
    name: 'one of two replicas, left out by the balancer at times, shows what is stored 0.3 s after the other',
    server: replicas(LEFT_OUT_ANSWERS),
  },
  ...variants({
    // Longer than ingest may take.
    'one of two replicas shows what is stored 0.3 s later, and pages of a thousand are cached for twelve seconds':
      both(replicas(), cache(false, 12_000, (request) => queryOf(request).get('pageSize') === '1000').server),
    'an ingest that refuses screenings of the future': {
      target: ({ ingest, ...target }) => ({
        ...target,
        ingest:
          ingest &&
          (async (lines) => {
            const isFuture = (line: string) => Date.parse(parseScreening(line).testTime) > Date.now();
            if (lines.some(isFuture)) throw new Error('testTime is in the future');
            await ingest(lines);
          }),
      }),
    },
    'a scratch tenant that earlier runs have filled by half': keptScratch,
    'pages of at most two items of the scratch tenant': shortScratch,
    'pages of at most two items of the scratch tenant, which two replicas store in milliseconds': {
      server: both(replicas(), shortScratch),
      target: ({ ingest, ...target }) => ({
        ...target,
        ingest: ingest && ((lines) => ingest(lines.map((line) => cutText(line, 3)))),
      }),
    },
  }),
];
