/** Faults in the bytes and headers of any answer, and differences between two copies of one screening (2.3, 2.4, 5). */
import type { ServiceAnswer } from '../http/http.ts';
import {
  answers,
  eachText,
  header,
  isScreenings,
  isTokenRequest,
  jsonBody,
  middleware,
  withRequestValue,
  nextOf,
  pages,
  onPages,
  tokenClaims,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf } from './bearer.ts';
import { accepts, compressed } from './dialects.ts';
import { PAGES, theme, type Fault } from './fault.ts';
import { fieldOf } from './forms.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, '6-same-object']);

const inLatin1 = (text: string): Buffer =>
  Buffer.from(
    text.replace(/"links":(?=\{[^{]*\}\}$)/, '"station":"Zürich Hbf","links":').replace(/[^\0-\xff]/g, '?'),
    'latin1',
  );

const pageBytes = (alter: (text: string) => Buffer): ServerOptions =>
  onPages((page) => ({ ...page, body: alter(String(page.body)) }));

const isBeyond32Kb = ({ body }: ServiceAnswer): boolean => String(body).length > 32_768;

export const answered: readonly Fault[] = [
  ...fails({ '2.3-object-stable': /as another answer showed it/ })({
    'one of two deployed versions adds a member': eachText((item, number) =>
      number % 2 === 0 ? item.replace(/\}$/, ',"schema":2}') : item,
    ),
  }),
  ...failsFull({ '2.3-object-stable': /as the dataset has it/ })({
    'a member of the dataset is left out': eachText((item) =>
      item.replace(/"result":[^,}]*,?/, '').replace(/,\}$/, '}'),
    ),
    'decimals are rounded': eachText((item) => item.replace(/("temperature":\d+)\.\d+/, '$1')),
  }),
  ...fails({ '2.4-utf8': /JSON in UTF-8.*no UTF-8/ })({
    'pages are encoded in Latin-1': pageBytes(inLatin1),
  }),
  ...fails({ '2.4-utf8': /byte order mark/ })({
    'pages begin with a byte order mark': pageBytes((text) => Buffer.from(`\uFEFF${text}`)),
  }),
  ...fails({ '4.2-r7-link': /every Link rel="next"/ })({
    'a second Link rel="next" leads to the next page but one': pages((page) => {
      const next = nextOf(page);
      if (next) page.headers.push(['link', `<${next.replace(/from_id=(\d+)/, 'from_id=$10')}>; rel="next"`]);
    }),
  }),
  ...fails({ '4.2-repeatable': /as number \d+ again/ })({
    'the cache of compressed pages lacks an item': pages((page, _, __, request) => {
      if (accepts('gzip')(request)) page.items.splice(1, 1);
    }),
  }),
  ...fails({ '4.2-repeatable': /the same page for Accept-Encoding: gzip/ })({
    'compressed pages are truncated': onPages((page) => compressed(page, 'gzip', 20), accepts('gzip')),
    'compressed pages of more than 32 kB are truncated': onPages(
      (page) => compressed(page, 'gzip', isBeyond32Kb(page) ? 20 : 0),
      accepts('gzip'),
    ),
  }),
  ...failsLater({ '4.2-repeatable': /the same page for Accept-Encoding: br/ })({
    'pages of more than 32 kB are truncated in br': onPages(
      (page) => (isBeyond32Kb(page) ? compressed(page, 'br', 20) : page),
      accepts('br'),
    ),
  }),
  ...fails({ '2.4-items': /items: an array/ })({
    'a cache serves what it compressed to clients that accept no gzip': middleware(() => {
      const kept = new Map<string, ServiceAnswer['body']>();
      return async (request, next) => {
        const answer = await next(request);
        if (!isScreenings(request) || answer.status !== 200) return answer;
        if (!accepts('gzip')(request)) return { ...answer, body: kept.get(request.path) ?? answer.body };
        const zipped = compressed(answer, 'gzip');
        kept.set(request.path, zipped.body);
        return zipped;
      };
    }),
  }),
  ...fails({ '5-no-echo': /no answer with the client_secret.*the body/ })({
    'token errors quote the form': answers((answer, request) =>
      answer.status === 400 && isTokenRequest(request)
        ? jsonBody(({ error }) => ({ error, error_description: `refused: ${request.body}` }))(answer)
        : answer,
    ),
  }),
  ...fails({ '5-no-echo': /no answer with the client_secret.*claims/ })({
    'the client_secret is a claim of the token': withRequestValue(fieldOf('client_secret'), (current) =>
      tokenClaims(() => ({ client_secret: current() })),
    ),
  }),
  ...fails({ '5-no-echo': /no token outside of the token response.*set-cookie/ })({
    'pages set the token as a cookie': onPages((page, _, request) =>
      withHeader(page, 'set-cookie', `session=${authorizationOf(request).slice('Bearer '.length)}; Path=/`),
    ),
  }),
  ...fails({ '5-not-shared-cache': /public, max-age=60/ })({
    'pages are public for a minute': onPages(header('cache-control', 'public, max-age=60')),
  }),
];
