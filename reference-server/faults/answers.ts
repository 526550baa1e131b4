/** Faults in the bytes and headers of any answer, and differences between two copies of one screening (2.3, 2.4, 5). */
import { gzipSync } from 'node:zlib';
import { errorAnswer } from '../http/http.ts';
import {
  answers,
  isTokenRequest,
  jsonBody,
  withRequestValue,
  nextOf,
  pages,
  refusals,
  onPages,
  tokenClaims,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf } from './bearer.ts';
import { pageFaults, tripping, type Fault } from './fault.ts';
import { formOf } from './token-errors.ts';

const pageBytes = (alter: (text: string) => Buffer): ServerOptions =>
  onPages((page) => ({ ...page, body: alter(String(page.body)) }));

const items = (
  change: (item: string) => string,
  where: (query: URLSearchParams, number: number) => boolean = () => true,
): ServerOptions =>
  pages((page, query, number) => {
    if (where(query, number)) page.items = page.items.map(change);
  });

const withStation = (text: string): string =>
  text.replace(/"links":(?=\{[^{]*\}\}$)/, '"station":"Zürich Hbf","links":');

export const answered: readonly Fault[] = [
  ...tripping({ '2.3-object-stable': /as another answer showed it/ })({
    'two versions in parallel, one of which adds a member': items(
      (item) => item.replace(/\}$/, ',"schema":2}'),
      (_, number) => number % 2 === 0,
    ),
    'small pages leave out members that are null elsewhere': items(
      (item) => item.replace(/\}$/, ',"note":null}'),
      (query) => Number(query.get('pageSize') ?? 100) > 10,
    ),
  }),
  ...tripping(
    { '2.3-object-stable': /as the dataset has it/ },
    { mayTrip: ['6-same-object'], bare: false },
  )({
    'a field of the dataset is not shown': items((item) =>
      item.replace(/"result":[^,}]*,?/, '').replace(/,\}$/, '}'),
    ),
    'blanks round a text are cut off': items((item) => item.replace(/(?<="person":") +| +(?=")/g, '')),
    'markup in a text is escaped': items((item) => item.replaceAll('<', '&lt;').replaceAll('>', '&gt;')),
    'decimals are rounded': items((item) => item.replace(/("temperature":\d+)\.\d+/, '$1')),
  }),
  ...tripping(
    { '2.4-utf8': /JSON in UTF-8.*no UTF-8/ },
    { mayTrip: ['2.4-links'] },
  )({
    'pages in Latin-1': pageBytes((text) =>
      Buffer.from(withStation(text).replace(/[^\0-\xff]/g, '?'), 'latin1'),
    ),
  }),
  ...tripping({ '2.4-utf8': /byte order mark/ })({
    'a byte order mark before every page': pageBytes((text) => Buffer.from(`\uFEFF${text}`)),
  }),
  ...tripping({ '2.4-utf8': /no UTF-8/ })({
    'a name cut in the middle of a character': pageBytes((text) => {
      const whole = Buffer.from(withStation(text));
      const at = whole.indexOf('ü');
      return Buffer.concat([whole.subarray(0, at + 1), whole.subarray(at + 2)]);
    }),
  }),
  ...tripping({ '4.2-r7-link': /every Link rel="next"/ })({
    'a second rel="next" leads to the next page but one': pages((page) => {
      const next = nextOf(page);
      if (next) page.headers.push(['link', `<${next.replace(/from_id=(\d+)/, 'from_id=$10')}>; rel="next"`]);
    }),
  }),
  ...pageFaults({ '4.2-repeatable': /as number \d+ again/ })({
    'compressed pages come from a cache of their own, which lacks an item': pages(
      (page, _, __, { headers }) => {
        if (headers['accept-encoding']?.includes('gzip')) page.items.splice(1, 1);
      },
    ),
  }),
  ...pageFaults({ '4.2-repeatable': /the same page for Accept-Encoding: gzip/ })({
    'compressed pages are cut short': onPages((page, _, { headers }) =>
      headers['accept-encoding']?.includes('gzip')
        ? withHeader(
            { ...page, body: gzipSync(String(page.body)).subarray(0, -20) },
            'content-encoding',
            'gzip',
          )
        : page,
    ),
  }),
  ...tripping({ '5-no-echo': /no answer with the client_secret.*the body/ })({
    'token errors quote the form that they are about': answers((answer, request) =>
      answer.status === 400 && isTokenRequest(request)
        ? jsonBody(({ error }) => ({ error, error_description: `refused: ${request.body.toString()}` }))(
            answer,
          )
        : answer,
    ),
  }),
  ...tripping({ '5-no-echo': /no token outside of the token response.*the body/ })({
    'a 403 shows the headers of its request': refusals([403], (answer, { headers }) => ({
      ...answer,
      body: errorAnswer(403, 'forbidden', JSON.stringify(headers)).body,
    })),
  }),
  ...tripping({ '5-no-echo': /no answer with the client_secret.*claims/ })({
    'the client_secret is a claim of the token': withRequestValue(
      (request) => formOf(request).get('client_secret')?.[0],
      (current) => tokenClaims(() => ({ client_secret: current() })),
    ),
  }),
  ...tripping({ '5-no-echo': /no token outside of the token response.*set-cookie/ })({
    'the token comes back in a cookie': onPages((page, _, request) =>
      withHeader(page, 'set-cookie', `session=${authorizationOf(request).slice('Bearer '.length)}; Path=/`),
    ),
  }),
  ...tripping({ '5-not-shared-cache': /public, max-age=60/ })({
    'pages are public for a minute': onPages((page) =>
      withHeader(page, 'cache-control', 'public, max-age=60'),
    ),
  }),
  ...tripping({ '5-not-shared-cache': /s-maxage=30/ })({
    'later pages are kept by shared caches': onPages((page, query) =>
      query.has('from_id') ? withHeader(page, 'cache-control', 'max-age=0, s-maxage=30') : page,
    ),
  }),
];
