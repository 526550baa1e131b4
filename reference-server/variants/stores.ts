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
import type { Target } from '../../engine/target/target.ts';
import { middleware, pages, storedPages, withHeader } from '../run/alter.ts';
import { eachItem, retimed, rows, screening, withAdded } from '../faults/rows.ts';
import type { StoredScreening } from '../parts.ts';
import { variants, type Variant } from './variant.ts';
import { TENANTS } from '../run/provisioning.ts';

/** A store that cuts the dataset's testTimes; its events show what it stores. */
const truncating = (name: string, digits: number): Variant => {
  const store = rows({ at: (testTime) => cutInstant(instant(testTime), digits) });
  const shown = eachItem((item) => retimed(item, cutText(item.testTime, digits)));
  return {
    name,
    server: { ...store, wrapParts: (parts) => shown.wrapParts!(store.wrapParts!(parts)) },
    target: (target) => ({
      ...target,
      events: target.events?.map((line) =>
        line.replace(/"testTime":"([^"]*)"/, (_, at: string) => `"testTime":"${cutText(at, digits)}"`),
      ),
    }),
  };
};

export const microseconds = [truncating('a store of microseconds, loaded with a finer dataset', 6)];
export const milliseconds = [truncating('a store of milliseconds, loaded with a finer dataset', 3)];

const ofTenant = (json: string, tenantId: string): string =>
  json.replace(/"tenantId":"[^"]*"/, `"tenantId":"${tenantId}"`);

export const equalData: readonly Variant[] = [
  {
    name: 'both tenants hold equal data but for tenantId',
    server: storedPages(() => async (query, ask) => {
      if (query.tenantId === TENANTS.primary) return ask(query);
      const page = await ask({ ...query, tenantId: TENANTS.primary });
      const items = page.items.map((item) => ({ ...item, json: ofTenant(item.json, query.tenantId) }));
      return { ...page, items };
    }),
    target: (target): Target => {
      const tenantId = target.clients.secondTenant?.tenantId ?? TENANTS.primary;
      return {
        ...target,
        secondDataset: target.dataset?.map((one) => ({
          ...one,
          tenantId,
          json: ofTenant(one.json, tenantId),
        })),
      };
    },
  },
];

/** The first and the last microsecond that can be written: what devices and databases use for no time. */
const EXTREMES = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z'];

const extremesOf = (tenantId: string): readonly StoredScreening[] =>
  EXTREMES.map((text, index) => screening(tenantId, 4_700_001n + BigInt(index), instant(text)));

export const extremes: readonly Variant[] = [
  {
    name: 'a screening at the first and at the last instant that can be written',
    server: withAdded(
      () =>
        ({ tenantId }) =>
          tenantId === TENANTS.primary ? extremesOf(tenantId) : [],
    ),
    target: (target) => ({
      ...target,
      dataset: target.dataset && [
        ...target.dataset,
        ...extremesOf(TENANTS.primary).map(({ json }) => parseScreening(json)),
      ],
    }),
  },
];

const PART = { from: instant('2024-05-01T00:00:00Z'), to: instant('2024-09-01T00:00:00Z') };
const isInPart = (text: string): boolean =>
  compareInstants(instant(text), PART.from) >= 0 && compareInstants(instant(text), PART.to) < 0;

export const part: readonly Variant[] = [
  {
    name: 'the dataset is the part of the screenings that window names',
    target: (target) => ({
      ...target,
      window: PART,
      dataset: target.dataset?.filter(({ testTime }) => isInPart(testTime)),
    }),
  },
];

const LATE_MS = 1_500;
const EMPTY_PAGES = 12;
const WIDE_SECONDS = 10n * 365n * 86_400n;

export const late = variants({
  'what was loaded shows a second late': storedPages(() => {
    const since = Date.now();
    return async (query, ask) => (Date.now() - since < LATE_MS ? { items: [], more: false } : ask(query));
  }),
  // Searches wide windows in slices, the first of which are empty.
  'a dozen empty pages in a row before the first screenings of a wide window': pages(
    (page, query, _, request) => {
      const slice = Number(query.get('slice') ?? 0);
      const [from, to] = ['from', 'to'].map((name) => instant(query.get(name)!).seconds);
      const isWide = to! - from! > WIDE_SECONDS && !query.has('from_id');
      if (!isWide || slice >= EMPTY_PAGES || page.items.length === 0) return;
      const { next = `http://${request.headers['host']}${request.path}` } = page.links as { next?: string };
      const url = new URL(request.path, next);
      url.searchParams.set('slice', String(slice + 1));
      page.items = [];
      page.links = { next: url.href };
      page.headers = page.headers.filter(([name]) => name !== 'link');
      page.headers.push(['link', `<${url.href}>; rel="next"`]);
    },
  ),
});

/** Converts stored instants and parameters to the precision of a column type. */
const ofType = (name: string, digits: number, make: typeof cutInstant): Variant => {
  const made = (text: string): Instant => make(instant(text), digits);
  const store = rows({ at: made, read: made });
  const shown = eachItem((item) => retimed(item, formatInstant(made(item.testTime), { digits })));
  return {
    name,
    server: { ...store, wrapParts: (parts) => shown.wrapParts!(store.wrapParts!(parts)) },
    // No capture of the queue has these spellings.
    target: ({ events: _, ...target }) => target,
  };
};

/** Like PostgreSQL's timestamptz. */
export const rounded = [
  ofType('instants are rounded to microseconds, stored and asked for', 6, roundInstant),
];
/** Like .NET's ticks. */
export const ticks = [ofType('instants are cut to seven digits, stored and asked for', 7, cutInstant)];

const AHEAD_MS = 20 * 60_000;

export const clocks = variants({
  'a clock twenty minutes ahead of the kit’s, as its Date says': {
    now: () => Date.now() + AHEAD_MS,
    ...middleware(
      () => async (request, next) =>
        withHeader(await next(request), 'date', new Date(Date.now() + AHEAD_MS).toUTCString()),
    ),
  },
});

// -- queues with more than one event per screening ----------------------------------------------------

const withEvents = (change: (line: string, index: number) => readonly string[]): Pick<Variant, 'target'> => ({
  target: (target): Target => ({ ...target, events: target.events?.flatMap(change) }),
});

const renamed = (line: string, name: string): string =>
  line.replace(/"id":"[^"]*"/, `"id":"${name}"`).replace(/"type":"[^"]*"/, `"type":"example.${name}"`);

export const queues: readonly Variant[] = [
  {
    name: 'events of other types in the same queue',
    ...withEvents((line, index) => {
      if (index % 20 !== 7) return [line];
      const begun = renamed(line, `begun.${index}`).replace(/"data":.*/s, '"data":{"device":"SN-1"}}');
      return [begun.replace(/example\.begun\.\d+/, 'example.begun'), line];
    }),
  },
  {
    name: 'an event of each version of a screening that was amended',
    ...withEvents((line, index) => {
      if (index % 50 !== 9) return [line];
      const older = line
        .replace(/"id":"[^"]*"/, `"id":"older-${index}"`)
        .replace(/"result":[^,}]*/, '"result":"draft"');
      return [older, line];
    }),
  },
];
