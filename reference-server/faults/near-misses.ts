/** Values near the right one that are taken for it. */
import { cutInstant, compareInstants, parseInstant, shift, type Instant } from '../../engine/data/instant.ts';
import {
  isScreenings,
  middleware,
  queryOf,
  refusals,
  requests,
  storedPages,
  withQuery,
} from '../run/alter.ts';
import { errorAnswer, type ServiceRequest } from '../http/http.ts';
import { CODES } from '../../engine/checks/errors.ts';
import type { Fault } from './fault.ts';
import { formOf, forms } from './token-errors.ts';

type Server = NonNullable<Fault['server']>;

/** Query parameters as another parser reads them. */
const reading = (names: readonly string[], read: (text: string) => string): Server =>
  requests((request) => {
    if (!isScreenings(request)) return request;
    const query = queryOf(request);
    const odd = names.filter((name) => query.has(name) && read(query.get(name)!) !== query.get(name));
    return odd.length === 0
      ? request
      : withQuery(request, (changed) => odd.forEach((name) => changed.set(name, read(query.get(name)!))));
  });

const TIMES = ['from', 'to'];
const INTEGERS = ['pageSize', 'from_id'];
const untilNul = (text: string): string => text.split('\0')[0]!;

/** Learns the right values from requests that earn a token. */
const knowing = (
  name: 'client_id' | 'client_secret',
  take: (value: string, right: string) => boolean,
): Server =>
  middleware(() => {
    const rights = new Map<string, ReadonlyMap<string, readonly string[]>>();
    return async (request: ServiceRequest, next) => {
      const answer = await next(request);
      const form = formOf(request);
      const value = form.get(name)?.[0];
      if (value === undefined) return answer;
      if (answer.status === 200) rights.set(value, form);
      const right = [...rights].find(([known]) => take(value, known))?.[1];
      if (answer.status !== 401 || !right) return answer;
      const pairs = [...right].map(([key, [first = '']]): [string, string] => [key, first]);
      return next({ ...request, body: Buffer.from(new URLSearchParams(pairs).toString()) });
    };
  });

const typed = (name: string, suffix: string): Server =>
  forms((form) => {
    const value = form.get(`${name}${suffix}`);
    if (value && !form.has(name)) form.set(name, value);
  });

const rounded = (at: Instant): Instant =>
  at.fraction.length > 6 && at.fraction[6]! >= '5' ? shift(cutInstant(at, 6), 1n) : at;

const isBefore1970 = (text: string | null): boolean => (parseInstant(text ?? '')?.seconds ?? 0n) < 0n;

export const nearMisses: readonly Fault[] = [
  {
    name: 'every fourth year has a 29 February',
    trips: { '7.2-invalid_time_range': /400 invalid_time_range.*200/ },
    server: reading(TIMES, (text) => text.replace(/^(19|21)00-02-29T/, '$100-03-01T')),
  },
  {
    name: 'times in the digits of any script are read',
    trips: { '7.2-invalid_time_range': /400 invalid_time_range.*200/ },
    server: reading(TIMES, (text) => text.replace(/\p{Nd}/gu, (digit) => String(digit.codePointAt(0)! & 15))),
  },
  {
    name: 'the minus sign of typesetters is a minus',
    trips: {
      '7.2-invalid_time_range': /400 invalid_time_range.*200/,
      '7.2-invalid_request': /400 invalid_request.*(200|page_size_out_of_range)/,
    },
    server: reading([...TIMES, ...INTEGERS], (text) => text.replace('\u2212', '-')),
  },
  {
    name: 'times end at a NUL',
    trips: { '7.2-invalid_time_range': /400 invalid_time_range.*200/ },
    server: reading(TIMES, untilNul),
  },
  {
    name: 'integers end at a NUL',
    trips: { '7.2-invalid_request': /400 invalid_request.*200/ },
    server: reading(INTEGERS, untilNul),
  },
  {
    name: 'a pageSize of 64 bits is cut to 32 with its sign',
    trips: { '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ },
    server: reading(['pageSize'], (text) =>
      /^-\d{10}$/.test(text) ? String(BigInt.asIntN(32, BigInt(text))) : text,
    ),
  },
  {
    name: 'a from_id beyond 64 bits wraps around',
    trips: { '4.2-from_id': /(item|\d)/ },
    server: reading(['from_id'], (text) =>
      /^\d{20,}$/.test(text) ? String(BigInt.asUintN(64, BigInt(text))) : text,
    ),
  },
  {
    name: 'the sign of a from_id is lost',
    trips: { '4.2-from_id': /(item|\d)/ },
    server: reading(['from_id'], (text) => text.replace(/^-(?=\d)/, '')),
  },
  {
    name: 'a from_id is cut to 32 bits',
    trips: { '4.2-from_id': /(item|\d)/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-r4-order', '4.2-window', '4.2-repeatable'],
    server: storedPages(
      () => (query, ask) =>
        ask(query.fromId === undefined ? query : { ...query, fromId: BigInt.asIntN(32, query.fromId) }),
    ),
  },
  {
    name: 'from is rounded to the microsecond where a from_id stands beside it',
    trips: { '4.2-fractions-finer': /item/ },
    server: storedPages(
      () => (query, ask) => ask(query.fromId === undefined ? query : { ...query, from: rounded(query.from) }),
    ),
  },
  {
    name: 'fractions before 1970 go backwards',
    trips: { '4.2-r2-inverted': /invalid_time_range.*200/ },
    mayTrip: ['4.2-success', '4.2-window'],
    server: requests((request) => {
      const query = queryOf(request);
      const [from, to] = [query.get('from'), query.get('to')];
      if (!isScreenings(request) || !isBefore1970(from) || !isBefore1970(to)) return request;
      const [a, b] = [parseInstant(from!)!, parseInstant(to!)!];
      return a.seconds === b.seconds && compareInstants(a, b) !== 0
        ? withQuery(request, (changed) => (changed.set('from', to!), changed.set('to', from!)))
        : request;
    }),
  },
  ...TIMES.map((name): Fault => ({
    name: `${name}[] is as good as ${name}`,
    trips: { [`4.2-${name}-required`]: /400.*200/ },
    server: requests((request) => {
      const value = queryOf(request).get(`${name}[]`);
      return value === null || queryOf(request).has(name)
        ? request
        : withQuery(request, (query) => query.set(name, value));
    }),
  })),
  {
    name: 'every error lists all codes',
    trips: { '7.2-body': /a JSON body with/ },
    mayTrip: [
      '5-missing',
      '5-scheme',
      '5-garbage',
      '5-tampered',
      '5-forged',
      '5-expired',
      '5-query-token',
      '5-forbidden',
      '5-forbidden-unknown',
      '7.2-unauthenticated',
      '7.2-forbidden',
      '7.2-not_found',
      '7.2-invalid_request',
      '7.2-invalid_time_range',
      '7.2-page_size_out_of_range',
      '4.2-from-required',
      '4.2-to-required',
      '4.2-r2-inverted',
      '4.2-from_id',
    ],
    server: refusals([400, 401, 403, 404], ({ status, headers }) => ({
      ...errorAnswer(status, 'see the list', 'refused'),
      headers,
      body: JSON.stringify({ status, codes: Object.values(CODES).flat() }),
    })),
  },
  {
    name: 'client_secret[$ne] is an operator of the database',
    trips: { '7.1-invalid_request-missing': /400 invalid_request.*token/ },
    mayTrip: ['5-one-tenant'],
    server: middleware(() => {
      let secret: readonly string[] | undefined;
      return async (request: ServiceRequest, next) => {
        const form = formOf(request);
        if (form.has('client_secret[$ne]') && secret) {
          const pairs = [...form].map(([key, [value = '']]): [string, string] =>
            key === 'client_secret[$ne]' ? ['client_secret', secret![0]!] : [key, value],
          );
          return next({ ...request, body: Buffer.from(new URLSearchParams(pairs).toString()) });
        }
        const answer = await next(request);
        if (answer.status === 200 && form.has('client_secret')) secret = form.get('client_secret');
        return answer;
      };
    }),
  },
  {
    name: 'grant_type[] is as good as grant_type',
    trips: { '7.1-invalid_request-missing': /400 invalid_request.*token/ },
    server: typed('grant_type', '[]'),
  },
  {
    name: 'a client_id is looked up with LIKE',
    trips: { '7.1-invalid_client-id': /401 invalid_client.*token/ },
    server: knowing('client_id', (value) => value === '%'),
  },
  {
    name: 'a client_secret may stand anywhere in what is sent',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*token/ },
    bare: false,
    server: knowing('client_secret', (value, right) => value !== right && value.endsWith(right)),
  },
  {
    name: 'a client_secret repeated after a NUL is the same to bcrypt',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*token/ },
    bare: false,
    server: knowing('client_secret', (value, right) => value === `${right}\0${right}`),
  },
  {
    name: 'a grant_type ends at a NUL',
    trips: { '7.1-unsupported_grant_type': /400 unsupported_grant_type.*token/ },
    server: forms((form) => {
      const [text = ''] = form.get('grant_type') ?? [];
      if (text.includes('\0')) form.set('grant_type', [untilNul(text)]);
    }),
  },
  {
    name: 'a scope of * is all that there are',
    trips: { '7.1-invalid_scope': /400 invalid_scope.*token/ },
    server: forms((form) => {
      if (form.get('scope')?.[0] === '*') form.set('scope', ['screenings.read']);
    }),
  },
];
