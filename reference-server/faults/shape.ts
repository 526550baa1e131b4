/** Sections 2.3 and 2.4: faults in the shape of screenings and pages. */
import { cutInstant, formatInstant, instant, offsetMinutesOf, shift } from '../../engine/data/instant.ts';
import { both, nextOf, onPages, pages, pageText, setNext, urlOf, withQuery } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { hasParameter } from '../run/conditions.ts';
import { PAGES, theme, type Fault } from './fault.ts';
import { alterStored, eachItem, itemText, retimed, rows, sized } from './rows.ts';

const { fails } = theme(PAGES);

const times = (change: (testTime: string) => unknown): ServerOptions =>
  itemText(/"testTime":"([^"]*)"/, (_, testTime: string) => `"testTime":${JSON.stringify(change(testTime))}`);

/** Changes the links of pages with a next; `otherwise` are the links of the others. */
const otherNext = (linksOf: (next: string) => unknown, otherwise?: unknown): ServerOptions =>
  pages((page) => {
    const next = nextOf(page);
    if (next) page.links = linksOf(next);
    else if (otherwise !== undefined) page.links = otherwise;
  });

const inMilliseconds = (testTime: string): string =>
  formatInstant(cutInstant(instant(testTime), 3), { digits: 3 });

/** A store that has other microseconds for each screening; `shown` prints milliseconds of them. */
const shownInMilliseconds = (shown: ServerOptions): Omit<Fault, 'name' | 'trips'> => ({
  server: both(
    eachItem((item) =>
      retimed(item, formatInstant(shift(instant(inMilliseconds(item.testTime)), item.id % 997n, 6))),
    ),
    rows({}),
    shown,
  ),
  mayTrip: [...PAGES, '6-same-object'],
});

export const shape: readonly Fault[] = [
  ...fails({ '2.3-id': /id: a JSON integer/ })({
    'ids beyond 2^53 are strings': itemText(/"id":(\d{16,})/, '"id":"$1"'),
  }),
  ...fails({ '2.3-id-stable': /id \d+ for one screening only|with the same id again/ })({
    'the id is the number of the row on the page': eachItem((item, index) => ({
      ...item,
      json: item.json.replace(/"id":\d+/, `"id":${index + 1}`),
    })),
    'pages of 1000 come from an archive with other ids': onPages(
      (page) => ({
        ...page,
        body: String(page.body).replace(/"id":(\d+)/g, (_, id) => `"id":${BigInt(id) + 4_000_000_000n}`),
      }),
      hasParameter('pageSize', /^1000$/),
    ),
    'ids are rounded to doubles': itemText(/"id":(\d+)/, (_, id) => `"id":${Number(id)}`),
  }),
  ...fails({ '2.3-tenantId': /as in the path.*ffffffff/ })({
    'one item in thirty has another tenantId': itemText(
      /"tenantId":"[^"]*"/,
      '"tenantId":"ffffffff-ffff-4fff-8fff-ffffffffffff"',
      ({ id }) => id % 30n === 7n,
    ),
  }),
  ...fails({ '2.3-testTime': /RFC 3339 date-time with offset/ })({
    'testTime has no offset': times((at) => formatInstant(instant(at)).replace('Z', '')),
    'testTime is in epoch milliseconds': times((at) => Date.parse(at)),
  }),
  ...fails({ '4.2-fractions': /more digits than are shown/ })({
    'testTime is shown in milliseconds, and compared in microseconds': shownInMilliseconds(
      eachItem((item) => retimed(item, inMilliseconds(item.testTime))),
    ),
  }),
  ...fails({ '4.2-r6-next-from': /next with from=.*the testTime of the last item/ })({
    'testTime is shown in milliseconds, and from of next in microseconds': shownInMilliseconds(
      times(inMilliseconds),
    ),
  }),
  ...fails({ '4.2-window': /only items in \[|on the page|as the dataset says/ })({
    'testTime is the local time of the device with Z': eachItem((item) =>
      offsetMinutesOf(item.testTime) === 0
        ? item
        : retimed(item, item.testTime.replace(/[+-]\d\d:\d\d$/, 'Z')),
    ),
  }),
  ...fails({ '2.4-items': /items: an array/ })({
    'items is null on an empty page': pageText('"items":[]', '"items":null'),
  }),
  ...fails({ '2.4-items': /at most pageSize=\d+ items/ })({
    'the extra row of the query stays on the page': sized((pageSize) => pageSize + 1),
  }),
  ...fails({ '2.4-links': /links: an object/ })({
    'links is missing on the last page': pageText(/,"links":\{\}\}$/, '}'),
    'links is an array of relations': otherNext((href) => [{ rel: 'next', href }], []),
  }),
  ...fails({ '2.4-next': /next: a URL/ })({
    'next is an object with href': otherNext((href) => ({ next: { href } })),
  }),
  ...fails({ '2.4-next-absent': /next: null/ })({
    'next is null on the last page': pageText(/"links":\{\}\}$/, '"links":{"next":null}}'),
  }),
  ...fails({ '2.4-next-no-empty-page': /an empty page/ })({
    'every full page has next': alterStored((page, query) => ({
      ...page,
      more: page.items.length === query.pageSize,
    })),
  }),
  ...fails({ '2.4-full-pages': /items on a page with next/ })({
    'pages hold at most 500 items': { large: true, server: sized((pageSize) => Math.min(pageSize, 500)) },
  }),
  ...fails({ '4.2-r5-exactly-once': /repeats|leads back|each screening once/ })({
    'next of the last page leads to the first': pages((page, _, __, request) => {
      if (!nextOf(page)) setNext(page, urlOf(withQuery(request, (query) => query.delete('from_id'))));
    }),
  }),
];
