/** Faults in the octets and headers of any answer, and between two answers with the same screening (2.3, 2.4, 5). */
import { AsyncLocalStorage } from 'node:async_hooks';
import { gzipSync } from 'node:zlib';
import { parseForm } from '../http/form.ts';
import { errorAnswer, type ServiceAnswer } from '../http/http.ts';
import {
  answers,
  claims,
  isScreenings,
  middleware,
  pages,
  queryOf,
  refusals,
  withHeader,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';

/** Alters the octets of every page. */
const octets = (alter: (text: string) => Buffer): NonNullable<Fault['server']> =>
  answers((answer, request) =>
    isScreenings(request) && answer.status === 200 ? { ...answer, body: alter(String(answer.body)) } : answer,
  );

const withStation = (text: string): string =>
  text.replace(/"links":(?=\{[^{]*\}\}$)/, '"station":"Zürich Hbf","links":');

const caching = (value: string): NonNullable<Fault['server']> =>
  answers((answer, request) =>
    isScreenings(request) && answer.status === 200 ? withHeader(answer, 'cache-control', value) : answer,
  );

export const answered: readonly Fault[] = [
  {
    name: 'two versions in parallel, one of which adds a member',
    trips: { '2.3-object-stable': /as another answer showed it/ },
    server: pages((page, _, number) => {
      if (number % 2 === 0) page.items = page.items.map((item) => item.replace(/\}$/, ',"schema":2}'));
    }),
  },
  {
    name: 'small pages leave out members that are null elsewhere',
    trips: { '2.3-object-stable': /as another answer showed it/ },
    server: pages((page, query) => {
      if (Number(query.get('pageSize') ?? 100) > 10)
        page.items = page.items.map((item) => item.replace(/\}$/, ',"note":null}'));
    }),
  },
  {
    name: 'a field of the dataset is not shown',
    trips: { '2.3-object-stable': /as the dataset has it/ },
    mayTrip: ['6-same-object'],
    bare: false,
    server: pages((page) => {
      page.items = page.items.map((item) => item.replace(/"result":[^,}]*,?/, '').replace(/,\}$/, '}'));
    }),
  },
  {
    name: 'decimals are rounded',
    trips: { '2.3-object-stable': /as the dataset has it/ },
    mayTrip: ['6-same-object'],
    bare: false,
    server: pages((page) => {
      page.items = page.items.map((item) => item.replace(/("temperature":\d+)\.\d+/, '$1'));
    }),
  },
  {
    name: 'pages in Latin-1',
    trips: { '2.4-utf8': /JSON in UTF-8.*no UTF-8/ },
    mayTrip: ['2.4-links'],
    server: octets((text) => Buffer.from(withStation(text).replace(/[^\0-\xff]/g, '?'), 'latin1')),
  },
  {
    name: 'a byte order mark before every page',
    trips: { '2.4-utf8': /byte order mark/ },
    server: octets((text) => Buffer.from(`\uFEFF${text}`)),
  },
  {
    name: 'a name cut in the middle of a character',
    trips: { '2.4-utf8': /no UTF-8/ },
    server: octets((text) => {
      const whole = Buffer.from(withStation(text));
      const at = whole.indexOf('ü');
      return Buffer.concat([whole.subarray(0, at + 1), whole.subarray(at + 2)]);
    }),
  },
  {
    name: 'a second rel="next" leads to the next page but one',
    trips: { '4.2-r7-link': /every Link rel="next"/ },
    server: pages((page) => {
      const { next } = page.links as { next?: string };
      if (next) page.headers.push(['link', `<${next.replace(/from_id=(\d+)/, 'from_id=$10')}>; rel="next"`]);
    }),
  },
  {
    name: 'compressed pages come from a cache of their own, which lacks an item',
    trips: { '4.2-repeatable': /item number \d+ again/ },
    server: pages((page, _, __, { headers }) => {
      if (headers['accept-encoding']?.includes('gzip')) page.items.splice(1, 1);
    }),
    mayTrip: [
      '4.2-window',
      '4.2-r5-exactly-once',
      '4.2-from-inclusive',
      '4.2-from_id',
      '4.2-r6-next-from',
      '4.2-r6-next-from_id',
    ],
  },
  {
    name: 'compressed pages are cut short',
    trips: { '4.2-repeatable': /the same page for Accept-Encoding: gzip/ },
    mayTrip: ['2.4-items', '2.4-links'],
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200 && request.headers['accept-encoding']?.includes('gzip')
        ? withHeader(
            { ...answer, body: gzipSync(String(answer.body)).subarray(0, -20) },
            'content-encoding',
            'gzip',
          )
        : answer,
    ),
  },
  {
    name: 'token errors quote the form that they are about',
    trips: { '5-no-echo': /no answer with the client_secret.*the body/ },
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      if (answer.status !== 400 || !request.path.includes('/oauth/token')) return answer;
      const { error } = JSON.parse(String(answer.body)) as { error: string };
      const body = { error, error_description: `refused: ${request.body.toString()}` };
      return { ...answer, body: JSON.stringify(body) };
    }),
  },
  {
    name: 'a 403 shows the headers of its request',
    trips: { '5-no-echo': /no token outside of the token response.*the body/ },
    server: refusals([403], (answer, { headers }): ServiceAnswer => {
      const { body } = errorAnswer(403, 'forbidden', JSON.stringify(headers));
      return { ...answer, body };
    }),
  },
  {
    name: 'the client_secret is a claim of the token',
    trips: { '5-no-echo': /no answer with the client_secret.*claims/ },
    server: secretInClaims(),
  },
  {
    name: 'the token comes back in a cookie',
    trips: { '5-no-echo': /no token outside of the token response.*set-cookie/ },
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200
        ? withHeader(
            answer,
            'set-cookie',
            `session=${(request.headers['authorization'] ?? '').slice('Bearer '.length)}; Path=/`,
          )
        : answer,
    ),
  },
  {
    name: 'pages are public for a minute',
    trips: { '5-not-shared-cache': /public, max-age=60/ },
    server: caching('public, max-age=60'),
  },
  {
    name: 'later pages are kept by shared caches',
    trips: { '5-not-shared-cache': /s-maxage=30/ },
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      return isScreenings(request) && answer.status === 200 && queryOf(request).has('from_id')
        ? withHeader(answer, 'cache-control', 'max-age=0, s-maxage=30')
        : answer;
    }),
  },
];

function secretInClaims(): NonNullable<Fault['server']> {
  const secret = new AsyncLocalStorage<string | undefined>();
  return {
    wrapHandler: (handler) => (request) =>
      secret.run(parseForm(request.body.toString())?.get('client_secret')?.[0], () => handler(request)),
    ...claims((original) => ({ ...original, client_secret: secret.getStore() })),
  };
}
