/**
 * Describes a failure with a small set of features: which part of the answer is wrong and how, what was requested,
 * and in which circumstances. Numbers, names, times and addresses are removed, so that the same mistake has the same
 * features on any target.
 */
import { sameInstant, parseInstant } from '../../engine/data/instant.ts';
import { UNLESS } from '../../engine/checks/mismatch.ts';
import type { WalkPicture } from '../../engine/checks/walk-picture.ts';
import type { Failure } from '../../engine/run/evidence/evidence.ts';
import type { RequirementResult } from '../report.ts';

export type Features = ReadonlySet<string>;
export type Evidence = ReadonlyMap<string, Features>;

/** The mismatch is in a member of an answer or a part of its next, not in which items were selected. */
const OF_MEMBER = 'a member of the answer';
export const isOfMember = (features: ReadonlySet<string>): boolean => features.has(OF_MEMBER);

/** The answer also breaks another requirement. */
export const SAME_ANSWER = 'the same answer breaks ';
/** Incidental properties of a request, because checks and laws vary requests. */
export const HAPPENED =
  /^asked with (?:from_id|pageSize 1(?:000)?|a path in upper case|Authorization: Bearer \$TOKEN)$/;
/** The answer to a valid request in its usual form is wrong too. */
export const PLAINLY = 'asked plainly';
export const WANTED = 'wanted: ';
const MEMBER = [
  ...['next', 'from', 'to', 'pageSize', 'from_id', 'links', 'items', 'id', 'tenantId', 'testTime'],
  ...['access_token', 'token_type', 'expires_in', 'scope', 'refresh_token'],
  ...['iss', 'aud', 'sub', 'iat', 'exp', 'tenant_id'],
].join('|');
const MEMBERS = new RegExp(`^(?:next (?:at|leads)|(?:no )?(?:${MEMBER})(?:[:=]|$))|another id than before$`);

const TIME = /\d{4,}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?/g;
const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi;

/** A text of the kit without the parts that depend on the target. */
const plain = (text: string): string =>
  text
    .replace(/https?:\/\/\S+/g, 'URL')
    .replace(UUID, 'UUID')
    .replace(TIME, 'TIME')
    .replace(/\d+/g, '#')
    .replace(/#(?:\.#)+/g, '#')
    .replace(/\s+/g, ' ')
    .slice(0, 90)
    .trim();

export function evidenceOf(
  results: readonly Pick<RequirementResult, 'id' | 'status' | 'failures'>[],
): Evidence {
  const broken = results.filter(({ status }) => status === 'fail' || status === 'warn');
  return new Map(
    broken.map((result) => [
      result.id,
      new Set([
        ...result.failures.flatMap(featuresOf),
        ...broken
          .filter((other) => other !== result && sameAnswer(result, other))
          .map(({ id }) => `${SAME_ANSWER}${id}`),
      ]),
    ]),
  );
}

const sameAnswer = (
  a: Pick<RequirementResult, 'failures'>,
  b: Pick<RequirementResult, 'failures'>,
): boolean =>
  a.failures.some(
    ({ request, requestId }) =>
      request !== '' &&
      b.failures.some((other) => other.request === request && other.requestId === requestId),
  );

function featuresOf(failure: Failure): string[] {
  const { message, expected = message, picture, only = [], counterexample } = failure;
  const asked = requestFeatures(failure.request);
  const [received = ''] = failure.received?.split(UNLESS) ?? [];
  return [
    ...receivedFeatures(received, expected),
    ...(MEMBERS.test(received) ? [OF_MEMBER] : []),
    ...urlFeatures(received, expected),
    ...lossFeatures(received, expected),
    ...tieFeatures(received, expected, failure.request),
    `${WANTED}${plain(expected)}`,
    ...(picture ? pictureFeatures(picture) : []),
    ...only.map((circumstance) => `only ${plain(circumstance)}`),
    ...(counterexample ? [`law: ${plain(String(counterexample['law'] ?? ''))}`] : []),
    ...bodyFeatures(failure.response),
    ...(failure.sameAs === undefined ? [] : ['the octets of an answer to another request']),
    isFine(failure) ? FINER : 'shows with microseconds',
    ...(failure.confirmed?.startsWith('flaky') ? ['not each time'] : []),
    ...asked,
    ...(asked.every((feature) => HAPPENED.test(feature)) ? [PLAINLY] : []),
    ...[...failure.curl.matchAll(/Content-Type: ([\w/+-]+)/g)].map(
      ([, type]) => `asked with a body of ${type}`,
    ),
  ];
}

// -- what came ---------------------------------------------------------------------------------

const CODES = [
  ...['invalid_request', 'invalid_time_range', 'page_size_out_of_range', 'unauthenticated', 'forbidden'],
  ...[
    'not_found',
    'rate_limited',
    'internal_error',
    'service_unavailable',
    'invalid_client',
    'invalid_grant',
  ],
  ...['unauthorized_client', 'unsupported_grant_type', 'invalid_scope', 'access_denied', 'invalid_target'],
];

function receivedFeatures(received: string, expected: string): string[] {
  const answered = /^([1-5]\d\d)\b(?! (?:items|screenings|of)) ?(.*)/s.exec(received);
  if (answered) return answerFeatures(answered[1]!, answered[2]!, expected);
  const times = timeFeatures(received, expected);
  const named = /^([\w.-]+)[:=] ?(.*)/s.exec(received);
  if (named && !/^\d/.test(named[2]!.slice(1)) && times.length === 0) {
    return [`got: ${named[1]} ${valueFeature(named[2]!)}`];
  }
  const value = named ? [`got: ${named[1]} ${valueFeature(named[2]!)}`] : [`got: ${plain(received)}`];
  return [...value, ...times];
}

function answerFeatures(status: string, rest: string, expected: string): string[] {
  if (rest.startsWith('{"items"')) {
    return [
      `answered ${status} with ${rest.startsWith('{"items":[]') ? 'an empty page' : 'a page of items'}`,
    ];
  }
  if (rest.startsWith('with a token')) return [`answered ${status} with a token`];
  const wanted = /^(\d{3})/.exec(expected)?.[1];
  const right = wanted === status ? ', the status that is wanted' : '';
  const lower = rest.toLowerCase();
  const code = CODES.find((one) => lower.includes(one));
  const spelt = code && !rest.includes(code) ? ' in another spelling' : '';
  const nested = code && /^\{"\w+":\{/.test(rest) ? ' one level down' : '';
  return [`answered ${status}${right}`, code ? `code ${code}${spelt}${nested}` : 'no documented code'];
}

const isFine = ({ message, request }: Failure): boolean =>
  /\.\d{7}/.test(`${message} ${request}`.replaceAll(/(\.\d{6})0+(?!\d)/g, '$1'));
const FINER = 'shows below a microsecond';

/** The component that wrote an error body, if its form reveals it. */
function bodyFeatures(response: string): string[] {
  if (!/^[45]\d\d /.test(response)) return [];
  const body = response.slice(4);
  if (/^<(!doctype|html|h1|center)/i.test(body)) return ['an HTML page'];
  if (/^\{.*"(type|title)":.*"(title|status)":/.test(body)) return ['problem details'];
  return /^\{("detail":|"timestamp":|"statusCode":|"message":"Cannot )/.test(body)
    ? ['the body of a framework']
    : [];
}

/** The type of a JSON value, or the value itself if it is a single word. */
function valueFeature(text: string): string {
  if (/^(nothing|none)/.test(text)) return 'absent';
  if (text.startsWith('null')) return 'null';
  if (text.startsWith('[')) return 'an array';
  if (text.startsWith('{')) return 'an object';
  const word = /^"([a-z_.\s-]{0,40})"/i.exec(text);
  if (word) return word[1] === '' ? 'an empty string' : `"${word[1]}"`;
  if (text.startsWith('"')) return `a string "${plain(text.slice(1, 40))}`;
  if (/^-?\d+$/.test(text)) return `an integer of ${Math.min(20, text.length)} digits`;
  if (/^-?\d+\.\d+/.test(text)) return 'a number with a fraction';
  return plain(text);
}

function lossFeatures(received: string, expected: string): string[] {
  const more = /\band (\d+) more\b/.exec(`${expected} ${received}`)?.[1];
  return [
    ...(more === undefined ? [] : [Number(more) < 5 ? 'a few are missing' : 'many are missing']),
    ...(/^(0|no) items\b/.test(received) ? ['nothing came'] : []),
    ...(/\band no next\b/.test(received) ? ['no next after it'] : []),
  ];
}

/** Whether a page after a cursor lacks items at the cursor's instant, and begins after it. */
function tieFeatures(received: string, expected: string, request: string): string[] {
  const cursor = urlIn(request)?.searchParams;
  if (!cursor?.has('from_id')) return [];
  const [at, wanted, came] = [cursor.get('from'), timeIn(expected), timeIn(received)].map(
    (text) => text && parseInstant(text),
  );
  return at && wanted && came && sameInstant(at, wanted) && !sameInstant(at, came)
    ? ['the rest of a tie is missing']
    : [];
}

const timeIn = (text: string): string | undefined => text.match(TIME)?.[0];

const urlIn = (text: string): URL | undefined => {
  const found = /https?:\/\/[^\s>",]+/.exec(text)?.[0];
  return found !== undefined && URL.canParse(found) ? new URL(found) : undefined;
};

function urlFeatures(received: string, expected: string): string[] {
  const [came, wanted] = [urlIn(received), urlIn(expected)];
  if (!came || !wanted) return [];
  const parts = (['protocol', 'host', 'pathname'] as const).filter((part) => came[part] !== wanted[part]);
  const names = new Set([...came.searchParams.keys(), ...wanted.searchParams.keys()]);
  const parameters = [...names].filter(
    (name) => came.searchParams.get(name) !== wanted.searchParams.get(name),
  );
  const longer = came.pathname.startsWith(wanted.pathname) ? 'a longer path' : 'another path';
  return [
    ...parts.map((part) => (part === 'pathname' ? longer : `another ${part}`)),
    ...parameters.map((name) => `another ${plain(name)} in the URL`),
    ...(/<https?:/.test(received) || !/link/i.test(expected) ? [] : ['no angle brackets']),
  ];
}

function timeFeatures(received: string, expected: string): string[] {
  const [wanted] = expected.match(TIME) ?? [];
  const [came] = received.match(TIME) ?? [];
  if (!wanted || !came || wanted === came) return [];
  const [a, b] = [parseInstant(wanted), parseInstant(came)];
  if (!a || !b) return ['a time without its offset'];
  if (sameInstant(a, b)) return ['the same instant in another spelling'];
  if (a.seconds !== b.seconds) {
    const apart = a.seconds > b.seconds ? a.seconds - b.seconds : b.seconds - a.seconds;
    return [apart % 900n === 0n && apart <= 50_400n ? 'off by as much as an offset' : 'another instant'];
  }
  if (a.fraction.startsWith(b.fraction)) return [`cut to ${b.fraction.length} digits`];
  return ['another fraction of the same second'];
}

// -- where a walk breaks -----------------------------------------------------------------------

function pictureFeatures({ pages, cursor, between }: WalkPicture): string[] {
  const items = pages.flatMap(({ items }) => items);
  const marked = [...between, ...items].find(({ mark }) => mark);
  if (!marked) return [];
  const last = pages.at(-1)!;
  const at = last.items.findIndex(({ mark }) => mark);
  const first = last.before === 0 && at === 0;
  const place = between.length > 0 ? 'between two pages' : first ? 'first of a page' : 'within a page';
  const instantOf = (testTime: string) => parseInstant(testTime);
  const here = instantOf(marked.testTime);
  const tied = items.some(
    (item) =>
      item.id !== marked.id &&
      here &&
      sameInstant(instantOf(item.testTime) ?? { seconds: -1n, fraction: '' }, here),
  );
  return [
    `${marked.mark}: ${place}`,
    `${marked.mark}: ${tied ? 'inside a tie' : 'no tie'}`,
    ...(cursor?.includes('from_id=none') ? ['the cursor has no from_id'] : []),
  ];
}

// -- what was asked ----------------------------------------------------------------------------

const FORM = ['grant_type', 'client_id', 'client_secret', 'scope'];

function requestFeatures(request: string): string[] {
  const [, method = '', rest = ''] = /^(\S+) (.*)$/s.exec(request) ?? [];
  const as = /, (Authorization: .*|no Authorization)$/s.exec(rest)?.[1];
  const [target = '', type, body] = rest
    .replace(/, (Authorization: .*|no Authorization)$/s, '')
    .split(/ with ([^:]*): (.*)/s);
  const form = type?.startsWith('application/x-www-form-urlencoded') ? body : undefined;
  const url = URL.canParse(target) ? new URL(target) : undefined;
  const fields = form === undefined ? undefined : form.split('&').map((field) => field.split('='));
  return [
    ...(method !== 'GET' && !form ? [`method ${method}`] : []),
    ...(as ? [`asked with ${plain(as.replace(/(\$TOKEN)\w* \(a new one\)/, '$1'))}`] : []),
    ...[...(url?.searchParams ?? [])].flatMap(([name, value]) => parameterFeature(name, value)),
    ...(url ? pathFeatures(url.pathname) : []),
    ...(url && method === 'GET' ? missingFrom(['from', 'to'], [...url.searchParams.keys()]) : []),
    ...(fields ? formFeatures(fields as [string, string][]) : []),
  ];
}

const missingFrom = (wanted: readonly string[], names: readonly string[]): string[] =>
  wanted.filter((name) => !names.includes(name)).map((name) => `asked without ${name}`);

/** A tenant in the path that is not a UUID, or is spelled unusually. */
function pathFeatures(path: string): string[] {
  const tenant = /\/tenants\/([^/]*)\//i.exec(path)?.[1];
  if (tenant === undefined || /^[0-9a-f-]{36}$/.test(tenant)) return [];
  return /^[0-9A-F-]{36}$/.test(tenant)
    ? ['asked with a path in upper case']
    : [`asked for the tenant ${plain(tenant)}`];
}

/** Invalid values only, reduced to their shape: `99x`, `9999-99-99`. */
function parameterFeature(name: string, value: string): string[] {
  const shape = value.replace(/\d/g, '9').replace(/9{5,}/g, '9…').slice(0, 40);
  if (name === 'from' || name === 'to') {
    if (value.startsWith('0000')) return ['asked with the year 0000'];
    return parseInstant(value) ? [] : [`asked with a time like ${shape}`];
  }
  if (name === 'pageSize') {
    const inRange = /^\d+$/.test(value) && Number(value) >= 1 && Number(value) <= 1000;
    if (value === '1' || value === '1000') return [`asked with pageSize ${value}`];
    return inRange ? [] : [`asked with pageSize like ${shape}`];
  }
  if (name === 'from_id')
    return /^\d{1,18}$/.test(value) ? ['asked with from_id'] : [`asked with from_id like ${shape}`];
  return [`asked with ${plain(name)}`];
}

function formFeatures(fields: readonly (readonly [string, string])[]): string[] {
  const names = fields.map(([name]) => name);
  const twice = FORM.filter((name) => names.filter((one) => one === name).length > 1);
  return [
    ...missingFrom(FORM, names),
    ...twice.map((name) => `asked with ${name} twice`),
    ...fields
      .filter(([name, value]) => !FORM.includes(name) || value === '')
      .map(([name]) => `asked with ${plain(name)}${FORM.includes(name) ? ' empty' : ''}`),
    ...fields
      .filter(([name, value]) => ['grant_type', 'scope'].includes(name) && value !== '')
      .filter(([, value]) => value !== 'client_credentials' && value !== 'screenings.read')
      .map(([name, value]) => `asked with ${name} ${plain(value)}`),
    ...fields
      .filter(([name, value]) => name === 'client_id' && /[A-Z]{3}/.test(value))
      .map(() => 'asked with client_id in capitals'),
  ];
}
