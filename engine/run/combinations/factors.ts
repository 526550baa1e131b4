/**
 * The factors of a request: rules are tested in combinations of them, and a finding may need some of them. The
 * first level of each factor is the usual one.
 */
import type { RequestOut } from '../../client/exchange.ts';
import { queryValue, screeningsUrl, withEdge, withParameter } from '../../client/page.ts';
import { MAX_ID } from '../../data/dataset.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  offsetMinutesOf,
  parseInstant,
  spellingOf,
} from '../../data/instant.ts';
import type { Instant, Spelling } from '../../data/instant.ts';
import { DIALECTS } from './dialects.ts';
import { tokenVariable } from '../evidence/evidence.ts';

/** The clients that combinations use. */
export type CombinedClient = 'primary' | 'secondTenant';

export interface NarrowWindow {
  readonly from: string;
  readonly to: string;
  readonly id: bigint;
}

/** The baseline request's data on the target under test. */
export interface Baseline {
  readonly baseUrl: string;
  readonly tenants: Readonly<Partial<Record<CombinedClient, string>>>;
  /** Every requested tenant, as spelled in the target file or its token. */
  readonly spellings: readonly string[];
  /** A second token of each client. */
  readonly tokens: Readonly<Partial<Record<CombinedClient, string>>>;
  /** A window with some screenings of each client, and the id of the first one. */
  readonly narrow: Readonly<Partial<Record<CombinedClient, NarrowWindow>>>;
  readonly nowMs: number;
}

interface Factor {
  readonly name: string;
  /** Each changes a request to that level. */
  readonly levels: Readonly<Record<string, (request: RequestOut, baseline: Baseline) => RequestOut>>;
  /** The level of a request; undefined if it has none, or has it for another reason. */
  readonly of?: (request: RequestOut, baseline: Baseline) => string | undefined;
}

const same = (request: RequestOut): RequestOut => request;

/** The request with a query parameter, spelled as on the wire; undefined removes it. */
export const requestWith = (request: RequestOut, name: string, value: string | undefined): RequestOut => ({
  ...request,
  url: withParameter(request.url, name, value),
});

const instantOf = ({ url }: RequestOut, name: string): Instant | undefined =>
  parseInstant(queryValue(url, name) ?? '');

/** Spells both edges of the window in another way. */
function respelt(request: RequestOut, spelling: (text: string) => Spelling): RequestOut {
  const respell = (at: Instant, text: string): string => formatInstant(at, spelling(text));
  return { ...request, url: withEdge(withEdge(request.url, 'from', respell), 'to', respell) };
}

export const withWindow = (request: RequestOut, from: string, to: string): RequestOut =>
  requestWith(requestWith(request, 'from', encodeURIComponent(from)), 'to', encodeURIComponent(to));

const EMPTY = ['1951-01-01T00:00:00Z', '1951-01-02T00:00:00Z'] as const;
const YEARS = ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z'] as const;
const YEAR_SECONDS = 31_556_952n;

/** The year after next. */
function future({ nowMs }: Baseline): [string, string] {
  const year = new Date(nowMs).getUTCFullYear() + 2;
  return [`${year}-01-01T00:00:00Z`, `${year + 1}-01-01T00:00:00Z`];
}

function windowOf(request: RequestOut, { nowMs }: Baseline): string | undefined {
  const [from, to] = [instantOf(request, 'from'), instantOf(request, 'to')];
  if (!from || !to || compareInstants(from, to) > 0) return undefined;
  if (compareInstants(from, to) === 0) return 'a window of no width';
  if (from.seconds * 1000n > BigInt(nowMs)) return 'a window in the future';
  if (to.seconds - from.seconds > YEAR_SECONDS) return 'a window of many years';
  return to.seconds === instant(EMPTY[1]).seconds ? 'an empty window before 1970' : 'a narrow window';
}

/** The offset of both edges; `-00:00` is a separate level. */
function zoneOf({ url }: RequestOut): string | undefined {
  const texts = ['from', 'to']
    .map((name) => queryValue(url, name) ?? '')
    .filter((text) => parseInstant(text));
  const odd = texts.find((text) => !/z$/i.test(text));
  if (texts.length === 0) return undefined;
  if (odd === undefined) return 'times with Z';
  return offsetMinutesOf(odd) < 0 ? 'times west of UTC' : 'times east of UTC';
}

function digitsOf({ url }: RequestOut): string | undefined {
  const counts = ['from', 'to'].flatMap((name) => {
    const text = queryValue(url, name) ?? '';
    return parseInstant(text) ? [spellingOf(text).digits] : [];
  });
  if (counts.length === 0) return undefined;
  return Math.max(...counts) === 0 ? 'times without a fraction' : `times of ${Math.max(...counts)} digits`;
}

const padded = (digits: number) => (request: RequestOut) =>
  respelt(request, (text) => ({ ...spellingOf(text), digits }));
const shifted = (offsetMinutes?: number) => (request: RequestOut) =>
  respelt(request, (text) => ({
    digits: spellingOf(text).digits,
    ...(offsetMinutes === undefined ? {} : { offsetMinutes }),
  }));
const sized = (size: string | undefined) => (request: RequestOut) => requestWith(request, 'pageSize', size);

/** Makes the request one of this client for its own path. */
function asClient(asker: CombinedClient): (request: RequestOut, baseline: Baseline) => RequestOut {
  return (request, { baseUrl, tenants }) => ({
    ...request,
    url: `${screeningsUrl(baseUrl, tenants[asker]!)}${request.url.slice(request.url.split('?')[0]!.length)}`,
    authorization: { kind: 'client', client: asker },
  });
}

export function combinedClientOf(
  { url, authorization }: RequestOut,
  { tenants }: Baseline,
): CombinedClient | undefined {
  const path = url.split('?')[0]!.toLowerCase();
  const owner = (['primary', 'secondTenant'] as const).find(
    (asker) => tenants[asker] && path.includes(tenants[asker].toLowerCase()),
  );
  const other = authorization.kind === 'client' && authorization.client !== owner;
  return other ? undefined : owner;
}

export const narrowOf = (request: RequestOut, baseline: Baseline): NarrowWindow =>
  baseline.narrow[combinedClientOf(request, baseline) ?? 'primary']!;

const TENANT = /(?<=\/tenants\/)[0-9a-f-]{36}(?=\/)/i;

const spellingOfTenant = (id: string, { spellings }: Baseline): string =>
  spellings.find((given) => given.toLowerCase() === id.toLowerCase()) ?? id;

const spelt =
  (spell: (given: string) => string) =>
  (request: RequestOut, baseline: Baseline): RequestOut => ({
    ...request,
    url: request.url.replace(TENANT, (id) => spell(spellingOfTenant(id, baseline))),
  });
const asGiven = spelt((id) => id);
const inAnotherCase = spelt((id) => (id === id.toLowerCase() ? id.toUpperCase() : id.toLowerCase()));

export const pathOf = (request: RequestOut, baseline: Baseline): string =>
  asGiven(request, baseline).url === request.url ? 'a path as given' : 'a path in another case';

function withNewToken(request: RequestOut, baseline: Baseline): RequestOut {
  const asker = combinedClientOf(request, baseline);
  const text = asker && baseline.tokens[asker];
  if (!text) return request;
  const shell = `Bearer $${tokenVariable(asker)}`;
  return {
    ...request,
    authorization: {
      kind: 'header',
      value: `Bearer ${text}`,
      label: `${shell} (a new one)`,
      shell,
      of: asker,
    },
  };
}

function withFirstToken(request: RequestOut, baseline: Baseline): RequestOut {
  const { authorization } = request;
  const asker = combinedClientOf(request, baseline);
  const held = authorization.kind === 'header' && authorization.of !== undefined;
  return held && asker ? { ...request, authorization: { kind: 'client', client: asker } } : request;
}

/** In the order in which they are applied. */
export const FACTORS: readonly Factor[] = [
  {
    name: 'tenant',
    levels: { 'as primary': asClient('primary'), 'as the second tenant': asClient('secondTenant') },
    of: (request, baseline) => {
      const asker = combinedClientOf(request, baseline);
      return asker === 'secondTenant' ? 'as the second tenant' : asker && 'as primary';
    },
  },
  {
    name: 'path',
    levels: { 'a path as given': asGiven, 'a path in another case': inAnotherCase },
    of: pathOf,
  },
  {
    name: 'token',
    levels: { 'the first token': withFirstToken, 'a new token': withNewToken },
    of: (request, baseline) =>
      withFirstToken(request, baseline) === request ? 'the first token' : 'a new token',
  },
  {
    name: 'window',
    levels: {
      'a narrow window': (request, baseline) => {
        const { from, to } = narrowOf(request, baseline);
        return withWindow(request, from, to);
      },
      'a window of no width': (request, baseline) => {
        const { from } = narrowOf(request, baseline);
        return withWindow(request, from, from);
      },
      'an empty window before 1970': (request) => withWindow(request, ...EMPTY),
      'a window of many years': (request) => withWindow(request, ...YEARS),
      'a window in the future': (request, baseline) => withWindow(request, ...future(baseline)),
    },
    of: windowOf,
  },
  {
    name: 'beginning',
    levels: {
      'without from_id': (request) => requestWith(request, 'from_id', undefined),
      'with from_id': (request, baseline) =>
        requestWith(request, 'from_id', String(narrowOf(request, baseline).id)),
      'with from_id beyond 2^53': (request) => requestWith(request, 'from_id', String(MAX_ID)),
    },
    of: ({ url }) => {
      const text = queryValue(url, 'from_id');
      if (text === undefined) return /[?&]from_id=/.test(url) ? undefined : 'without from_id';
      if (!/^\d+$/.test(text)) return undefined;
      return BigInt(text) > 2n ** 53n ? 'with from_id beyond 2^53' : 'with from_id';
    },
  },
  {
    name: 'page size',
    levels: {
      'a small pageSize': sized('7'),
      'no pageSize': sized(undefined),
      'pageSize 1': sized('1'),
      'pageSize 1000': sized('1000'),
    },
    of: ({ url }) => {
      const text = queryValue(url, 'pageSize');
      if (text === undefined) return /[?&]pageSize=/.test(url) ? undefined : 'no pageSize';
      if (!/^[1-9]\d{0,3}$/.test(text)) return undefined;
      if (text === '1') return 'pageSize 1';
      return text === '1000' ? 'pageSize 1000' : Number(text) < 100 ? 'a small pageSize' : `pageSize ${text}`;
    },
  },
  {
    name: 'offset',
    levels: {
      'times with Z': shifted(),
      'times east of UTC': shifted(330),
      'times west of UTC': shifted(-210),
    },
    of: zoneOf,
  },
  {
    name: 'digits',
    levels: {
      'times without a fraction': padded(0),
      'times of 3 digits': padded(3),
      'times of 6 digits': padded(6),
      'times of 9 digits': padded(9),
    },
    of: digitsOf,
  },
  ...DIALECTS,
  { name: 'concurrency', levels: { 'sent exclusively': same, 'sent concurrently': same } },
  { name: 'moment', levels: { 'early in the run': same, 'late in the run': same } },
];
