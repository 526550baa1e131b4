/** Describes a failure by features without numbers, times and addresses: a mistake has the same ones on any target. */
import { CODES as DOCUMENTED } from '../../engine/checks/errors.ts';
import { cutInstant, parseInstant, sameInstant, type Instant } from '../../engine/data/instant.ts';
import { parseQuery, type ParsedQuery } from '../../engine/client/page.ts';
import { UNLESS } from '../../engine/checks/mismatch.ts';
import type { WalkPicture } from '../../engine/checks/walk-picture.ts';
import type { Failure } from '../../engine/run/evidence/evidence.ts';
import type { RequirementResult } from '../report/report.ts';

export type Features = ReadonlySet<string>;
/** By requirement. */
export type Evidence = ReadonlyMap<string, Features>;
type Broken = Pick<RequirementResult, 'id' | 'status' | 'failures'>;

export const WANTED = 'wanted: ';
/** The answer also breaks another requirement. */
export const SAME_ANSWER = 'the same answer breaks ';
/** The mismatch is in a member of an answer or a part of its next, not in which items were selected. */
const OF_MEMBER = 'a member of the answer';
export const isOfMember = (features: Features): boolean => features.has(OF_MEMBER);

/** The server stores and compares testTime with more digits than it shows. */
export const FINER = 'more digits than are shown';
/** Instants in the wrong order that are the same when cut to milliseconds. */
const BELOW_A_MILLISECOND = 'instants that differ below a millisecond';

/** A request that alone got no answer. */
export const HANGS = 'no answer, twice';

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

export function evidenceOf(results: readonly Broken[]): Evidence {
  const broken = results.filter(({ status }) => status === 'fail' || status === 'warn');
  const alsoBrokenBy = (one: Broken): Broken[] =>
    broken.filter((other) => other !== one && haveSameAnswer(one, other));
  return new Map(
    broken.map((one) => [
      one.id,
      new Set([
        ...one.failures.flatMap(featuresOf),
        ...alsoBrokenBy(one).map(({ id }) => `${SAME_ANSWER}${id}`),
      ]),
    ]),
  );
}

const haveSameAnswer = (one: Broken, other: Broken): boolean =>
  one.failures.some(
    ({ request, requestId }) =>
      request !== '' &&
      other.failures.some((also) => also.request === request && also.requestId === requestId),
  );

function featuresOf(failure: Failure): string[] {
  const { expected, picture, only = [], request, response } = failure;
  const [received = ''] = failure.received.split(UNLESS);
  return [
    `${WANTED}${plain(expected)}`,
    ...(answerFeatures(received, expected) ?? [
      `got: ${plain(received)}`,
      ...timeFeatures(received, expected, request),
    ]),
    ...(MEMBERS.test(received) ? [OF_MEMBER] : []),
    ...(/\band ([5-9]|\d\d+) more\b(?! like)/.test(`${expected} ${received}`) ? ['many are missing'] : []),
    ...(LIMITER.test(received) ? ['a rate limiter'] : []),
    ...(picture ? pictureFeatures(picture) : []),
    ...only.map((level) => `only ${plain(level)}`),
    ...bodyFeatures(response),
    ...(isOther(failure.sameAs, request) ? ['the octets of an answer to another request'] : []),
    ...(received.includes(FINER) ? [FINER] : []),
    ...(/although another request was answered in between/.test(received) ? [HANGS] : []),
    isFine(failure) ? 'shows below a microsecond' : 'shows with microseconds',
    isWithinMilli(failure) ? 'shows within a millisecond of an edge' : 'shows in whole milliseconds',
    ...(failure.confirmed?.startsWith('flaky') || isServedAgain(received) ? ['not each time'] : []),
  ];
}

const LIMITER = /\ba rate limiter\b/i;

/** The server failed, although not because of what was sent (run/attribution/incidents.ts). */
const isServedAgain = (received: string): boolean =>
  /served when tried again|in flight, each time|over new connections broken/.test(received) &&
  !LIMITER.test(received);

// -- the answer --------------------------------------------------------------------------------

const CODES = [...Object.values(DOCUMENTED).flat(), 'access_denied', 'invalid_target'];

/** Undefined if the mismatch is not in the status, the code or the kind of answer. */
function answerFeatures(received: string, expected: string): string[] | undefined {
  const [, status, rest = ''] = /^([1-5]\d\d)\b(?! (?:items|screenings|of)) ?(.*)/s.exec(received) ?? [];
  if (!status) return undefined;
  if (rest.startsWith('{"items"')) return [`answered ${status} with a page`];
  if (rest.startsWith('with a token')) return [`answered ${status} with a token`];
  const code = CODES.find((one) => rest.toLowerCase().includes(one));
  return [
    `answered ${status}${expected.startsWith(status) ? ', the status that is wanted' : ''}`,
    code ? `code ${code}` : 'no documented code',
  ];
}

/** The query of a request as a failure shows it; undefined if it is invalid. */
const queryOf = (request: string): ParsedQuery | undefined =>
  parseQuery(/https?:\/\/[^\s,]+/.exec(request)?.[0] ?? '');

/** How a time differs from the expected one; after a cursor, whether the rest of its tie is missing. */
function timeFeatures(received: string, expected: string, request: string): string[] {
  const [first = '', second = ''] = / after item /.test(received) ? (received.match(TIME) ?? []) : [];
  const [one, other] = [parseInstant(first), parseInstant(second)];
  if (isSameMilli(one, other)) return [BELOW_A_MILLISECOND];
  const [wanted = '', came = ''] = [expected, received].map((text) => text.match(TIME)?.[0]);
  const [a, b] = [parseInstant(wanted), parseInstant(came)];
  const isInSecond = a && b && !sameInstant(a, b) && a.seconds === b.seconds;
  if (isInSecond && b.fraction.startsWith(a.fraction) && MEMBERS.test(received)) return [FINER];
  const query = queryOf(request);
  const cursor = query?.fromId === undefined ? undefined : query.from;
  if (a && cursor && sameInstant(a, cursor) && !(b && sameInstant(a, b)))
    return ['the rest of a tie is missing'];
  if (wanted === '' || came === '' || wanted === came) return [];
  if (!a || !b) return ['a time without its offset'];
  if (sameInstant(a, b)) return ['the same instant in another spelling'];
  if (a.seconds !== b.seconds) return ['another instant'];
  return [a.fraction.startsWith(b.fraction) ? 'cut to fewer digits' : 'another fraction of the same second'];
}

/** Requests whose windows begin and end almost at the same instants may well have the same answer. */
const ALMOST_SECONDS = 2n;
const areAlmost = (a: Instant, b: Instant): boolean => {
  const apart = a.seconds - b.seconds;
  return apart <= ALMOST_SECONDS && apart >= -ALMOST_SECONDS;
};

function isOther(before: string | undefined, request: string): boolean {
  if (before === undefined) return false;
  const [a, b] = [queryOf(before), queryOf(request)];
  const isAlmost =
    a?.tenantId === b?.tenantId &&
    a?.pageSize === b?.pageSize &&
    a?.fromId === b?.fromId &&
    (!a || !b || (areAlmost(a.from, b.from) && areAlmost(a.to, b.to)));
  return !isAlmost;
}

const MICRO = 6;

/**
 * Whether digits below the microsecond may decide: those of a time in the message, of `from`, or of a `to` within the
 * second of a time in the message. Walks end one nanosecond after their last item.
 */
function isFine({ message, request }: Failure): boolean {
  const { from, to } = queryOf(request) ?? {};
  const isBelow = (time: Instant | undefined): boolean => (time?.fraction.length ?? 0) > MICRO;
  const shown = (message.match(TIME) ?? []).flatMap((text) => parseInstant(text) ?? []);
  return (
    shown.some(isBelow) ||
    isBelow(from) ||
    (isBelow(to) && shown.some(({ seconds }) => seconds === to!.seconds))
  );
}

/** Whether two instants differ, and only in digits below the millisecond. */
const isSameMilli = (a: Instant | undefined, b: Instant | undefined): boolean =>
  a !== undefined && b !== undefined && !sameInstant(a, b) && sameInstant(cutInstant(a, 3), cutInstant(b, 3));

/** Whether a bound and another bound, or a time in the message, are the same in milliseconds. */
function isWithinMilli({ message, request }: Failure): boolean {
  const { from, to } = queryOf(request) ?? {};
  const shown = (message.match(TIME) ?? []).map((text) => parseInstant(text));
  return [from, to].some((edge) => [from, to, ...shown].some((time) => isSameMilli(edge, time)));
}

/** The component that wrote an error body, if its form reveals it. */
function bodyFeatures(response: string): string[] {
  if (!/^[45]\d\d /.test(response)) return [];
  const body = response.slice(4);
  // The service wrote it.
  if (CODES.some((code) => body.includes(`"${code}"`))) return [];
  if (/^<(!doctype|html|h1|center)/i.test(body)) return ['an HTML page'];
  if (/^\{.*"(type|title)":.*"(title|status)":/.test(body)) return ['problem details'];
  return /^\{("detail":|"timestamp":|"statusCode":|"message":"Cannot |.*"_links":)/.test(body)
    ? ['the body of a framework']
    : [];
}

function pictureFeatures({ pages, between }: WalkPicture): string[] {
  const items = pages.flatMap((page) => page.items);
  const marked = [...between, ...items].find(({ mark }) => mark);
  if (!marked) return [];
  const { items: last, before } = pages.at(-1)!;
  const isFirst = before === 0 && last.findIndex(({ mark }) => mark) === 0;
  const place = between.length > 0 ? 'between two pages' : isFirst ? 'first of a page' : 'within a page';
  const here = parseInstant(marked.testTime);
  const isTied = items.some(({ id, testTime }) => {
    const at = parseInstant(testTime);
    return id !== marked.id && at && here && sameInstant(at, here);
  });
  return [`${marked.mark}: ${place}`, ...(isTied ? [`${marked.mark}: inside a tie`] : [])];
}
