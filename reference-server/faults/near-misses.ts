/** Servers that accept a value close to the right one. */
import { compareInstants, cutInstant, parseInstant, shift, type Instant } from '../../engine/data/instant.ts';
import {
  isScreenings,
  jsonBody,
  queryOf,
  reading,
  refusals,
  requests,
  storedPages,
  withQuery,
} from '../run/alter.ts';
import type { PageQuery } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { CODES } from '../../engine/checks/errors.ts';
import { fullFaults, pageFaults, refusalFaults, tripping, type Fault } from './fault.ts';
import { anyClient, anySecret, first, forms, uncompared } from './token-errors.ts';

const TIMES = ['from', 'to'];
const INTEGERS = ['pageSize', 'from_id'];
const untilNul = (text: string): string => text.split('\0')[0]!;

const cursor = (change: (query: PageQuery, fromId: bigint) => Partial<PageQuery>): ServerOptions =>
  storedPages(
    () => (query, ask) =>
      ask(query.fromId === undefined ? query : { ...query, ...change(query, query.fromId) }),
  );

const rounded = (at: Instant): Instant =>
  at.fraction.length > 6 && at.fraction[6]! >= '5' ? shift(cutInstant(at, 6), 1n) : at;

export const nearMisses: readonly Fault[] = [
  ...tripping({ '7.2-invalid_time_range': /400 invalid_time_range.*200/ })({
    'every fourth year has a 29 February': reading(TIMES, (text) =>
      text.replace(/^(19|21)00-02-29T/, '$100-03-01T'),
    ),
    'times in the digits of any script are read': reading(TIMES, (text) =>
      text.replace(/\p{Nd}/gu, (digit) => String(digit.codePointAt(0)! & 15)),
    ),
    'times end at a NUL': reading(TIMES, untilNul),
  }),
  ...tripping({
    '7.2-invalid_time_range': /400 invalid_time_range.*200/,
    '7.2-invalid_request': /400 invalid_request.*(200|page_size_out_of_range)/,
  })({
    'the minus sign of typesetters is a minus': reading([...TIMES, ...INTEGERS], (text) =>
      text.replace('\u2212', '-'),
    ),
  }),
  ...tripping({ '7.2-invalid_request': /400 invalid_request.*200/ })({
    'integers end at a NUL': reading(INTEGERS, untilNul),
  }),
  ...tripping({ '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ })({
    'a pageSize of 64 bits is cut to 32 with its sign': reading(['pageSize'], (text) =>
      /^-\d{10}$/.test(text) ? String(BigInt.asIntN(32, BigInt(text))) : text,
    ),
  }),
  ...tripping({ '4.2-from_id': /(item|\d)/ })({
    'a from_id beyond 64 bits wraps around': reading(['from_id'], (text) =>
      /^\d{20,}$/.test(text) ? String(BigInt.asUintN(64, BigInt(text))) : text,
    ),
    'the sign of a from_id is lost': reading(['from_id'], (text) => text.replace(/^-(?=\d)/, '')),
  }),
  ...pageFaults({ '4.2-from_id': /(item|\d)/ })({
    'one more than the largest from_id is the smallest': cursor((_, fromId) => ({
      fromId: BigInt.asIntN(64, fromId + 1n) - 1n,
    })),
    'a from_id is cut to 32 bits': cursor((_, fromId) => ({ fromId: BigInt.asIntN(32, fromId) })),
  }),
  ...tripping(
    { '4.2-fractions-finer': /item/, '4.2-from_id': /item/ },
    { mayTrip: ['4.2-window'] },
  )({
    'from is rounded to the microsecond where there is a from_id': cursor(({ from }) => ({
      from: rounded(from),
    })),
  }),
  ...pageFaults({ '4.2-r2-inverted': /invalid_time_range.*200/ })({
    'fractions before 1970 go backwards': requests((request) => {
      const query = queryOf(request);
      const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
      const [a, b] = [parseInstant(from), parseInstant(to)];
      if (!isScreenings(request) || !a || !b || a.seconds >= 0n || a.seconds !== b.seconds) return request;
      if (compareInstants(a, b) === 0) return request;
      return withQuery(request, (changed) => (changed.set('from', to), changed.set('to', from)));
    }),
  }),
  ...TIMES.flatMap((name) =>
    tripping({ [`4.2-${name}-required`]: /400.*200/ })({
      [`${name}[] is as good as ${name}`]: requests((request) => {
        const value = queryOf(request).get(`${name}[]`);
        return value === null || queryOf(request).has(name)
          ? request
          : withQuery(request, (query) => query.set(name, value));
      }),
    }),
  ),
  ...refusalFaults({ '7.2-body': /a JSON body with/ })({
    'every error lists all codes': refusals([400, 401, 403, 404], (answer) =>
      jsonBody(() => ({ status: answer.status, codes: Object.values(CODES).flat() }))(answer),
    ),
  }),
  ...tripping(
    { '7.1-invalid_request-missing': /400 invalid_request.*token/ },
    { mayTrip: ['5-one-tenant'] },
  )({
    'client_secret[$ne] is an operator of the database': uncompared((form, value) => {
      if (form.delete('client_secret[$ne]')) form.set('client_secret', [value]);
    }),
  }),
  ...tripping({ '7.1-invalid_request-missing': /400 invalid_request.*token/ })({
    'grant_type[] is as good as grant_type': forms((form) => {
      const values = form.get('grant_type[]');
      if (values && !form.has('grant_type')) form.set('grant_type', values);
    }),
  }),
  ...tripping({ '7.1-invalid_client-id': /401 invalid_client.*token/ })({
    'a client_id is looked up with LIKE': anyClient((id) => id === '%'),
  }),
  ...fullFaults({ '7.1-invalid_client-secret': /401 invalid_client.*token/ })({
    'a client_secret may stand anywhere in what is sent': anySecret((shown, right) => shown.endsWith(right)),
    'a client_secret repeated after a NUL is the same to bcrypt': anySecret(
      (shown, right) => shown === `${right}\0${right}`,
    ),
  }),
  ...tripping({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*token/ })({
    'a grant_type ends at a NUL': first('grant_type', untilNul),
  }),
  ...tripping({ '7.1-invalid_scope': /400 invalid_scope.*token/ })({
    'a scope of * is all that there are': first('scope', (scope) =>
      scope === '*' ? 'screenings.read' : scope,
    ),
  }),
];
