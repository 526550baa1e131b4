/** Sections 2.3 and 2.4: faults in the shape of screenings and pages. */
import { formatInstant, instant, offsetMinutesOf } from '../../engine/data/instant.ts';
import { nextOf, nextUrls, pages, pageText, onPages, storedPages } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, pageFaults, tripping, type Fault } from './fault.ts';
import { eachItem, itemText, retimed } from './rows.ts';

const times = (change: (testTime: string) => unknown): ServerOptions =>
  itemText(/"testTime":"([^"]*)"/, (_, testTime: string) => `"testTime":${JSON.stringify(change(testTime))}`);

const lastLinks = (links: unknown): ServerOptions =>
  pages((page) => {
    if (!nextOf(page)) page.links = links;
  });

/** Changes the links of pages with a next; `otherwise` are the links of the others. */
const otherNext = (linksOf: (next: string) => unknown, otherwise?: unknown): ServerOptions =>
  pages((page) => {
    const next = nextOf(page);
    if (next) page.links = linksOf(next);
    else if (otherwise !== undefined) page.links = otherwise;
  });

const lostNext = (where: (query: URLSearchParams) => boolean): ServerOptions =>
  nextUrls((next, _, query) => (where(query) ? undefined : next));

const sized = (sizeOf: (pageSize: number) => number): ServerOptions =>
  storedPages(() => (query, ask) => ask({ ...query, pageSize: sizeOf(query.pageSize) }));

export const shape: readonly Fault[] = [
  ...pageFaults({ '2.3-id': /id: a JSON integer/ })({
    'ids as JSON strings': itemText(/"id":(\d+)/, '"id":"$1"'),
    'ids beyond 2^53 as strings, the others as numbers': itemText(/"id":(\d{16,})/, '"id":"$1"'),
  }),
  ...pageFaults({ '2.3-id-stable': /id \d+ for one screening only|with the same id again/ })({
    'the id is the number of the row on the page': eachItem((item, index) => ({
      ...item,
      json: item.json.replace(/"id":\d+/, `"id":${index + 1}`),
    })),
  }),
  ...pageFaults({ '2.3-id-stable': /with the same id again/ })({
    'pages of a thousand are read from an archive with ids of its own': onPages((page, query) =>
      query.get('pageSize') === '1000'
        ? {
            ...page,
            body: String(page.body).replace(/"id":(\d+)/g, (_, id) => `"id":${BigInt(id) + 4_000_000_000n}`),
          }
        : page,
    ),
  }),
  ...pageFaults({ '2.3-id-stable': /id \d+ for one screening only/ })({
    'ids rounded by way of floating point': itemText(/"id":(\d+)/, (_, id) => `"id":${Number(id)}`),
  }),
  ...pageFaults({ '2.3-tenantId': /tenantId: .*as in the path/ })({
    'tenantId left out of the items': itemText(/"tenantId":"[^"]*",/, ''),
  }),
  ...pageFaults({ '2.3-tenantId': /as in the path.*ffffffff/ })({
    'one item of thirty names another tenant': itemText(
      /"tenantId":"[^"]*"/,
      '"tenantId":"ffffffff-ffff-4fff-8fff-ffffffffffff"',
      ({ id }) => id % 30n === 7n,
    ),
  }),
  ...pageFaults({ '2.3-testTime': /RFC 3339 date-time with offset/ })({
    'testTime in UTC without Z': times((at) => formatInstant(instant(at)).replace('Z', '')),
    'testTime with a space for the T, as databases print it': times((at) => at.replace('T', ' ')),
    'testTime in epoch milliseconds': times((at) => Date.parse(at)),
  }),
  ...pageFaults({ '4.2-window': /only items in \[|on the page|as the dataset says/ })({
    'local time of the device printed as if it were UTC': eachItem((item) =>
      offsetMinutesOf(item.testTime) === 0
        ? item
        : retimed(item, item.testTime.replace(/[+-]\d\d:\d\d$/, 'Z')),
    ),
  }),
  ...pageFaults({ '2.4-items': /items: an array.*null/ })({
    'items is null on an empty page': pageText('"items":[]', '"items":null'),
  }),
  ...pageFaults({ '2.4-items': /items: an array/ })({
    'one item in place of an array of one': onPages((page) => {
      const body = String(page.body);
      const items = body.slice('{"items":['.length, body.lastIndexOf('],"links":'));
      const one = items !== '' && !/(?<=\}),(?=\{"id":)/.test(items);
      return one ? { ...page, body: body.replace(`"items":[${items}]`, () => `"items":${items}`) } : page;
    }),
  }),
  ...pageFaults({ '2.4-items': /at most pageSize=\d+ items/ })({
    'the extra row that tells whether more follow stays on the page': sized((pageSize) => pageSize + 1),
    'pageSize is ignored': sized(() => 250),
  }),
  ...tripping({ '2.4-links': /links: an object/ })({
    'links is missing on the last page': pageText(/,"links":\{\}\}$/, '}'),
  }),
  ...tripping({ '2.4-links': /links: an object.*null/ })({
    'links is null on an empty page': pageText('"items":[],"links":{}', '"items":[],"links":null'),
  }),
  ...pageFaults({ '2.4-links': /links: an object/ })({
    'links is an array of relations': otherNext((href) => [{ rel: 'next', href }], []),
  }),
  ...pageFaults({ '2.4-next': /on the page.*no next/ })({
    'next is left out from the third page on': lostNext(
      (query) => query.has('from_id') && Number(query.get('from_id')) % 2 === 0,
    ),
    'a full page is taken for the last one': lostNext((query) => query.get('pageSize') === '10'),
  }),
  ...pageFaults({ '2.4-next': /next: a URL/ })({
    'next is an object with href': otherNext((href) => ({ next: { href } })),
  }),
  ...pageFaults({ '2.4-next-absent': /next: null/ })({
    'next is null on the last page': lastLinks({ next: null }),
  }),
  ...pageFaults({ '2.4-next-absent': /next: ""/ })({
    'next is an empty string on the last page': lastLinks({ next: '' }),
  }),
  ...tripping(
    { '4.2-r5-exactly-once': /repeats|leads back|each screening once/ },
    { mayTrip: [...PAGES, '2.4-next-absent'] },
  )({
    'next of the last page leads back to the first': pages((page, query, _, request) => {
      if (nextOf(page)) return;
      query.delete('from_id');
      const url = `http://${request.headers['host']}${request.path.split('?')[0]}?${query}`;
      page.links = { next: url };
      page.headers.push(['link', `<${url}>; rel="next"`]);
    }),
  }),
];
