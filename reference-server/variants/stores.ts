/** Stores with coarser instants than the dataset, with delayed visibility or equal data for two tenants; queues. */
import {
  compareInstants,
  cutInstant,
  cutText,
  formatInstant,
  instant,
  roundInstant,
  type Instant,
} from '../../engine/data/instant.ts';
import { parseScreening } from '../../engine/data/dataset.ts';
import { both, pages, storedPages } from '../run/alter.ts';
import { withEvents } from '../faults/fault.ts';
import { eachItem, retimed, rows, screening, withAddedTo } from '../faults/rows.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import { dated } from './health.ts';
import { holdNothing } from './pages.ts';
import { withoutEvents, withTimesOfEvents, type Groups } from './variant.ts';

/** A store that truncates the dataset's testTimes; its events show what it stores. */
const truncating = (digits: number) => ({
  server: both(
    rows({ at: (testTime) => cutInstant(instant(testTime), digits) }),
    eachItem((item) => retimed(item, cutText(item.testTime, digits))),
  ),
  target: withTimesOfEvents((at) => cutText(at, digits)),
});

/** Converts stored instants and parameters to the precision of a column type. */
const ofType = (digits: number, make: typeof cutInstant) => {
  const made = (text: string): Instant => make(instant(text), digits);
  return {
    server: both(
      rows({ at: made, read: made }),
      eachItem((item) => retimed(item, formatInstant(made(item.testTime), { digits }))),
    ),
    // No capture of the queue has these spellings.
    target: withoutEvents,
  };
};

const ofTenant = (json: string, tenantId: string): string =>
  json.replace(/"tenantId":"[^"]*"/, `"tenantId":"${tenantId}"`);

/** The first and the last microsecond that can be written: what devices and databases use for no time. */
const EXTREMES = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z'].map((text, index) =>
  screening(TENANTS.primary, 4_700_001n + BigInt(index), instant(text)),
);

const PART = { from: instant('2024-05-01T00:00:00Z'), to: instant('2024-09-01T00:00:00Z') };
const isInPart = (text: string): boolean =>
  compareInstants(instant(text), PART.from) >= 0 && compareInstants(instant(text), PART.to) < 0;

const LATE_MS = 1_500;
/** For `lateMs` after the start, every `eachOf`-th page is empty, as if the load had not reached this replica. */
const loadedLate = (lateMs: number, eachOf = 1): ServerOptions =>
  storedPages(() => {
    const since = Date.now();
    let asked = 0;
    return async (query, ask) =>
      ++asked % eachOf === 0 && Date.now() - since < lateMs ? { items: [], more: false } : ask(query);
  });

const EMPTY_PAGES = 12;
const WIDE_SECONDS = 10n * 365n * 86_400n;
const AHEAD_MS = 20 * 60_000;

/** Delivers the event of an older version of the screening before one event in fifty, and again after it. */
const withOlder = (isAmended: (line: string) => boolean, member: RegExp, older: string) =>
  withEvents((line, index) => {
    if (index % 50 !== 9 || !isAmended(line)) return line;
    const before = line.replace(/"id":"[^"]*"/, `"id":"older-${index}"`).replace(member, older);
    return [before, line, before];
  });

export const stores: Groups = {
  'with a store of microseconds': { 'a store of microseconds, loaded with a finer dataset': truncating(6) },
  'with a store of milliseconds': {
    'a store of milliseconds, loaded with a finer dataset': truncating(3),
    'both tenants hold equal data but for tenantId': {
      server: storedPages(() => async (query, ask) => {
        if (query.tenantId === TENANTS.primary) return ask(query);
        const page = await ask({ ...query, tenantId: TENANTS.primary });
        const items = page.items.map((item) => ({ ...item, json: ofTenant(item.json, query.tenantId) }));
        return { ...page, items };
      }),
      target: (target) => {
        const tenantId = target.clients.secondTenant?.tenantId ?? TENANTS.primary;
        const secondDataset = target.dataset?.map((one) => ({
          ...one,
          tenantId,
          json: ofTenant(one.json, tenantId),
        }));
        return { ...target, secondDataset };
      },
    },
    'a clock twenty minutes ahead of the kit’s, as its Date says': {
      now: () => Date.now() + AHEAD_MS,
      ...dated(AHEAD_MS),
    },
    'events of other types in the same queue': {
      target: withEvents((line, index) => {
        if (index % 20 !== 7) return line;
        const begun = line
          .replace(/"id":"[^"]*"/, `"id":"begun.${index}"`)
          .replace(/"type":"[^"]*"/, '"type":"example.begun"')
          .replace(/"data":.*/s, '"data":{"device":"SN-1"}}');
        return [begun, line];
      }),
    },
    'events whose data_base64 is null': {
      target: withEvents((line) => line.replace(/\}$/, ',"data_base64":null}')),
    },
    'an event of each version of a screening that was amended; the older one is delivered again after the newer one':
      {
        target: withOlder(() => true, /"result":[^,}]*/, '"result":"draft"'),
      },
  },
  // Like PostgreSQL's timestamptz.
  'that rounds to microseconds': { 'instants are rounded to microseconds': ofType(6, roundInstant) },
  // Like .NET's ticks.
  'that cuts to ticks': { 'instants are truncated to seven digits': ofType(7, cutInstant) },
  'with unset clocks': {
    'a screening at the first and at the last instant that can be written': {
      server: withAddedTo(TENANTS.primary, () => EXTREMES),
      target: (target) => ({
        ...target,
        dataset: target.dataset && [...target.dataset, ...EXTREMES.map(({ json }) => parseScreening(json))],
      }),
    },
  },
  'with a dataset of a part': {
    'the dataset is the part of the screenings that window names': {
      target: (target) => ({
        ...target,
        window: PART,
        dataset: target.dataset?.filter(({ testTime }) => isInPart(testTime)),
      }),
    },
    'an event of an older version, in the window, of screenings that were amended and lie outside; it is delivered again after the newer one':
      {
        target: withOlder(
          (line) => !isInPart(/"testTime":"([^"]*)"/.exec(line)![1]!),
          /"testTime":"[^"]*"/,
          '"testTime":"2024-06-15T12:00:00Z"',
        ),
      },
  },
  'on two replicas': {
    'one of two replicas in turn shows what was loaded three seconds later': loadedLate(2 * LATE_MS, 2),
  },
  'with accidents': {
    'loaded screenings become visible after a second': loadedLate(LATE_MS),
    // Searches wide windows in slices, the first of which are empty.
    'twelve empty pages before the first screenings of a wide window': pages((page, query, _, request) => {
      const slice = Number(query.get('slice') ?? 0);
      const [from, to] = ['from', 'to'].map((name) => instant(query.get(name)!).seconds);
      const isWide = to! - from! > WIDE_SECONDS && !query.has('from_id');
      if (!isWide || slice >= EMPTY_PAGES || page.items.length === 0) return;
      holdNothing(page, request, (next) => next.set('slice', String(slice + 1)));
    }),
  },
};
