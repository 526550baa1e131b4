/** Sections 2.3 and 2.4: what a screening and a page look like. */
import { formatInstant, instant, offsetMinutesOf } from '../../engine/data/instant.ts';
import { answers, isScreenings, nextUrls, pages, queryOf } from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { eachItem, retimed } from './rows.ts';

const inBody = (from: string | RegExp, to: string) =>
  answers((answer, request) =>
    isScreenings(request) && answer.status === 200
      ? { ...answer, body: String(answer.body).replace(from, to) }
      : answer,
  );

const archivedId = (_: string, id: string): string => `"id":${BigInt(id) + 4_000_000_000n}`;

export const shape: readonly Fault[] = [
  {
    name: 'ids as JSON strings',
    trips: { '2.3-id': /id: a JSON integer/ },
    mayTrip: ['4.2-window', '4.2-r4-order', '4.2-r5-exactly-once', '4.2-from-inclusive', '4.2-from_id'],
    server: eachItem((item) => ({ ...item, json: item.json.replace(/"id":(\d+)/, '"id":"$1"') })),
  },
  {
    name: 'ids beyond 2^53 as strings, the others as numbers',
    trips: { '2.3-id': /id: a JSON integer/ },
    mayTrip: ['4.2-window', '4.2-r4-order', '4.2-r5-exactly-once', '4.2-from-inclusive', '4.2-from_id'],
    server: eachItem((item) => ({ ...item, json: item.json.replace(/"id":(\d{16,})/, '"id":"$1"') })),
  },
  {
    name: 'the id is the number of the row on the page',
    trips: { '2.3-id-stable': /id \d+ for one screening only|with the same id again/ },
    mayTrip: [
      '4.2-window',
      '4.2-r4-order',
      '4.2-r5-exactly-once',
      '4.2-from-inclusive',
      '4.2-from_id',
      '4.2-repeatable',
      '4.2-offsets',
      '4.2-fractions',
      '2.4-next',
      '4.2-r6-next-from_id',
      '4.2-r3-one-tenant',
    ],
    server: eachItem((item, index) => ({
      ...item,
      json: item.json.replace(/"id":\d+/, `"id":${index + 1}`),
    })),
  },
  {
    name: 'pages of a thousand are read from an archive with ids of its own',
    trips: { '2.3-id-stable': /with the same id again/ },
    mayTrip: [
      '2.3-object-stable',
      '2.4-next',
      '4.2-fractions',
      '4.2-from-inclusive',
      '4.2-from_id',
      '4.2-offsets',
      '4.2-r3-one-tenant',
      '4.2-r4-order',
      '4.2-r5-exactly-once',
      '4.2-r6-next-from_id',
      '4.2-repeatable',
      '4.2-window',
    ],
    server: answers((answer, request) =>
      isScreenings(request) && queryOf(request).get('pageSize') === '1000'
        ? { ...answer, body: String(answer.body).replace(/"id":(\d+)/g, archivedId) }
        : answer,
    ),
  },
  {
    name: 'ids rounded by way of floating point',
    trips: { '2.3-id-stable': /id \d+ for one screening only/ },
    mayTrip: [
      '4.2-window',
      '4.2-from-inclusive',
      '4.2-from_id',
      '4.2-r4-order',
      '4.2-r5-exactly-once',
      '4.2-r6-next-from_id',
      '2.4-next',
      '4.2-offsets',
      '4.2-fractions',
      '4.2-repeatable',
    ],
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(/"id":(\d+)/, (_, id: string) => `"id":${Number(id)}`),
    })),
  },
  {
    name: 'tenantId left out of the items',
    trips: { '2.3-tenantId': /tenantId: .*as in the path/ },
    mayTrip: ['4.2-r3-one-tenant'],
    server: eachItem((item) => ({ ...item, json: item.json.replace(/"tenantId":"[^"]*",/, '') })),
  },
  {
    name: 'one item of thirty names another tenant',
    trips: { '2.3-tenantId': /as in the path.*ffffffff/ },
    mayTrip: ['4.2-r3-one-tenant', '4.2-window'],
    server: eachItem((item) =>
      item.id % 30n === 7n
        ? {
            ...item,
            json: item.json.replace(
              /"tenantId":"[^"]*"/,
              '"tenantId":"ffffffff-ffff-4fff-8fff-ffffffffffff"',
            ),
          }
        : item,
    ),
  },
  {
    name: 'testTime in UTC without Z',
    trips: { '2.3-testTime': /RFC 3339 date-time with offset/ },
    mayTrip: ['4.2-window', '4.2-r5-exactly-once', '4.2-from-inclusive', '4.2-from_id', '4.2-r6-next-from'],
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(
        /"testTime":"([^"]*)"/,
        (_, at: string) => `"testTime":"${formatInstant(instant(at)).replace('Z', '')}"`,
      ),
    })),
  },
  {
    name: 'testTime with a space for the T, as databases print it',
    trips: { '2.3-testTime': /RFC 3339 date-time with offset/ },
    mayTrip: ['4.2-window', '4.2-r5-exactly-once', '4.2-from-inclusive', '4.2-from_id', '4.2-r6-next-from'],
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(/("testTime":"\d{4}-\d\d-\d\d)T/, '$1 '),
    })),
  },
  {
    name: 'testTime in epoch milliseconds',
    trips: { '2.3-testTime': /RFC 3339 date-time with offset/ },
    mayTrip: ['4.2-window', '4.2-r5-exactly-once', '4.2-from-inclusive', '4.2-from_id', '4.2-r6-next-from'],
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(/"testTime":"([^"]*)"/, (_, at: string) => `"testTime":${Date.parse(at)}`),
    })),
  },
  {
    name: 'local time of the device printed as if it were UTC',
    trips: { '4.2-window': /only items in \[|on the page|as the dataset says/ },
    mayTrip: [
      '4.2-success',
      '4.2-r4-order',
      '4.2-r5-exactly-once',
      '4.2-from-inclusive',
      '4.2-to-exclusive',
      '4.2-r1-zero-width',
      '4.2-from_id',
      '4.2-offsets',
      '4.2-fractions',
      '4.2-repeatable',
      '2.3-id-stable',
      '2.4-next',
      '4.2-r6-next-from',
    ],
    server: eachItem((item) =>
      offsetMinutesOf(item.testTime) === 0
        ? item
        : retimed(item, item.testTime.replace(/[+-]\d\d:\d\d$/, 'Z')),
    ),
  },
  {
    name: 'items is null on an empty page',
    trips: { '2.4-items': /items: an array.*null/ },
    mayTrip: ['4.2-r1-zero-width'],
    server: inBody('"items":[]', '"items":null'),
  },
  {
    name: 'one item in place of an array of one',
    trips: { '2.4-items': /items: an array/ },
    mayTrip: [
      '4.2-window',
      '4.2-r5-exactly-once',
      '4.2-from-inclusive',
      '4.2-from_id',
      '4.2-offsets',
      '4.2-fractions',
      '4.2-repeatable',
      '2.4-next',
    ],
    server: pagesOfOne(),
  },
  {
    name: 'the extra row that tells whether more follow stays on the page',
    trips: { '2.4-items': /at most pageSize=\d+ items/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-r6-next-from', '4.2-r6-next-from_id', '4.2-pageSize-default'],
    server: withExtraRow(),
  },
  {
    name: 'pageSize is ignored',
    trips: { '2.4-items': /at most pageSize=\d+ items/ },
    mayTrip: ['4.2-r6-next-from', '4.2-r6-next-from_id', '4.2-pageSize-default', '4.2-pageSize-bounds'],
    server: onAllPages(250),
  },
  {
    name: 'links is missing on the last page',
    trips: { '2.4-links': /links: an object/ },
    server: inBody(/,"links":\{\}\}$/, '}'),
  },
  {
    name: 'links is null on an empty page',
    trips: { '2.4-links': /links: an object.*null/ },
    server: inBody('"items":[],"links":{}', '"items":[],"links":null'),
  },
  {
    name: 'links is an array of relations',
    trips: { '2.4-links': /links: an object/ },
    mayTrip: ['4.2-from_id', '2.4-next', '4.2-r5-exactly-once', '4.2-window', '4.2-r7-link-absent'],
    server: pages((page) => {
      const { next } = page.links as { next?: string };
      page.links = next ? [{ rel: 'next', href: next }] : [];
    }),
  },
  {
    name: 'next is left out from the third page on',
    trips: { '2.4-next': /on the page.*no next/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-window', '4.2-from_id'],
    server: lostNext((query) => query.has('from_id') && Number(query.get('from_id')) % 2 === 0),
  },
  {
    name: 'a full page is taken for the last one',
    trips: { '2.4-next': /on the page.*no next/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-window', '4.2-from_id'],
    server: lostNext((query) => query.get('pageSize') === '10'),
  },
  {
    name: 'next is an object with href',
    trips: { '2.4-next': /next: a URL/ },
    mayTrip: ['4.2-from_id', '4.2-r5-exactly-once', '4.2-window', '4.2-r7-link', '4.2-r7-link-absent'],
    server: pages((page) => {
      const { next } = page.links as { next?: string };
      if (next) page.links = { next: { href: next } };
    }),
  },
  {
    name: 'next is null on the last page',
    trips: { '2.4-next-absent': /next: null/ },
    mayTrip: ['4.2-r1-zero-width'],
    server: pages((page) => {
      if (!(page.links as { next?: string }).next) page.links = { next: null };
    }),
  },
  {
    name: 'next is an empty string on the last page',
    trips: { '2.4-next-absent': /next: ""/ },
    mayTrip: ['4.2-r1-zero-width'],
    server: pages((page) => {
      if (!(page.links as { next?: string }).next) page.links = { next: '' };
    }),
  },
  {
    name: 'next of the last page leads back to the first',
    trips: { '4.2-r5-exactly-once': /repeats|leads back|each screening once/ },
    mayTrip: [
      '4.2-window',
      '4.2-offsets',
      '4.2-from_id',
      '4.2-r4-order',
      '2.4-next-absent',
      '4.2-r6-next-from',
      '4.2-r6-next-from_id',
      '4.2-r7-link',
      '4.2-r7-link-absent',
      '4.2-r1-zero-width',
    ],
    server: pages((page, query, _, request) => {
      if ((page.links as { next?: string }).next) return;
      query.delete('from_id');
      const url = `http://${request.headers['host']}${request.path.split('?')[0]}?${query}`;
      page.links = { next: url };
      page.headers.push(['link', `<${url}>; rel="next"`]);
    }),
  },
];

function pagesOfOne() {
  return answers((answer, request) => {
    if (!isScreenings(request) || answer.status !== 200) return answer;
    const body = String(answer.body);
    const items = body.slice('{"items":['.length, body.lastIndexOf('],"links":'));
    const one = items !== '' && !/(?<=\}),(?=\{"id":)/.test(items);
    return one ? { ...answer, body: body.replace(`"items":[${items}]`, () => `"items":${items}`) } : answer;
  });
}

function withExtraRow() {
  return {
    wrapParts: (parts) => ({
      ...parts,
      store: {
        isOnboarded: (tenantId: string) => parts.store.isOnboarded(tenantId),
        page: (query) => parts.store.page({ ...query, pageSize: query.pageSize + 1 }),
      },
    }),
  } satisfies Fault['server'];
}

function onAllPages(pageSize: number) {
  return {
    wrapParts: (parts) => ({
      ...parts,
      store: {
        isOnboarded: (tenantId: string) => parts.store.isOnboarded(tenantId),
        page: (query) => parts.store.page({ ...query, pageSize }),
      },
    }),
  } satisfies Fault['server'];
}

function lostNext(where: (query: URLSearchParams) => boolean) {
  return nextUrls((next, _, query) => (where(query) ? undefined : next));
}
