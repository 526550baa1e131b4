/**
 * Decides which broken requirement follows from which other: if one answer is wrong in the same way for both, or if
 * breaking the cause makes the other impossible. Derived from the specification. In doubt a requirement is its own
 * cause: an extra cause costs less than a mistake hidden under another one.
 */
import { FINER, HANGS, SAME_ANSWER, WANTED, type Evidence, type Features } from './features.ts';

interface Consequence {
  readonly cause: RegExp;
  readonly follow: RegExp;
  /** A feature, or several, that the cause must have, such as what its own checks expect. */
  readonly has?: RegExp | readonly RegExp[];
  /** A feature that the consequence must have, and one that it must not have. */
  readonly shows?: RegExp;
  readonly except?: RegExp;
}

const ITEM = /^wanted: item # at TIME$/;
const NOT_ITEM = /^wanted: not item # at TIME$/;
/** Requirements about the items of a traversal or a window. */
const RETURNED =
  /^(2\.4-(next|full-pages|next-no-empty-page)|4\.2-(from-inclusive|to-exclusive|window|offsets|fractions|fractions-finer|lowercase|from_id|r1-.*|r5-.*))$/;
const WALKED = /^(2\.4-(next|full-pages|next-no-empty-page)|4\.2-(window|from_id|r5-.*))$/;

const SERVED = /^answered 2/;

const IS_FINER = new RegExp(`^${FINER}$`);

const CONSEQUENCES: readonly Consequence[] = [
  { cause: /^1-read-only$/, follow: /^1-read-only-refused$/ },
  { cause: /^2\.1-access_token$/, follow: /^(2\.2-|4\.1-success)/ },
  { cause: /^2\.1-expires_in$/, follow: /^2\.1-expires_in-3600$/ },
  { cause: /^2\.2-(exp|iat)$/, follow: /^2\.1-expires_in/ },
  { cause: /^2\.1-scope$/, follow: /^2\.2-scope$/ },
  // The answer that grants an unknown scope names another one than was requested.
  { cause: /^7\.1-invalid_scope$/, has: SERVED, follow: /^2\.[12]-scope$/, shows: /^got: scope: "/ },
  { cause: /^2\.2-sub$/, follow: /^2\.2-sub-client$/ },
  // The path of a tenant that has no id.
  { cause: /^2\.2-tenant_id$/, has: /^got: tenant_id: (?!"?UUID)/, follow: /^(5-one-tenant|4\.2-success)$/ },
  // An answer of another type, such as HTML, has no members.
  { cause: /^4\.1-content-type$/, follow: /^2\.1-/, shows: /^got: no JSON/ },
  { cause: /^4\.2-content-type$/, follow: /^(2\.4-|4\.2-repeatable$)/, shows: /^got: no JSON/ },
  // Ids that change, items of another tenant, malformed pages, and a different answer each time break every requirement
  // on the items returned.
  { cause: /^(2\.3-(id-stable|tenantId)|2\.4-items|4\.2-(repeatable|r3-one-tenant))$/, follow: RETURNED },
  { cause: /^4\.2-repeatable$/, follow: /^(2\.4-items|4\.2-(r4-order|pageSize-default))$/ },
  // An item that cannot be identified is missing wherever it is expected.
  { cause: /^2\.3-(id|testTime)$/, follow: RETURNED, shows: /is missing at the beginning/ },
  { cause: /^2\.3-id-stable$/, follow: /^(2\.3-object-stable|4\.2-(r[34]-.*|r6-next-from_id))$/ },
  { cause: /^2\.3-tenantId$/, follow: /^4\.2-r3-one-tenant$/ },
  { cause: /^2\.4-links$/, follow: /^(2\.4-next|4\.2-(r5-exactly-once|r7-link-absent|window))$/ },
  { cause: /^2\.4-items$/, follow: /^4\.2-(pageSize-default|r6-next-pageSize)$/ },
  { cause: /^2\.4-utf8$/, follow: /^2\.3-object-stable$/ },
  { cause: /^2\.4-next-absent$/, follow: /^4\.2-r1-zero-width$/ },
  { cause: /^4\.2-r6-next-pageSize$/, follow: /^(2\.4-(full-pages|items)|4\.2-pageSize-default)$/ },
  // If pages overlap or go back, the order is broken from page to page.
  {
    cause: /^4\.2-(r5-exactly-once|from_id|offsets|r6-next-(from|from_id|to))$/,
    follow: /^4\.2-r4-order$/,
    shows: /^(repeated|misplaced): first of a page/,
  },
  { cause: /^9-prefix$/, follow: /^4\.2-r6-next-target$/ },
  // A wrong order or a wrong next breaks every walk.
  {
    cause: /^4\.2-r4-order$/,
    follow: RETURNED,
    has: /^misplaced: (within|inside)/,
    except: IS_FINER,
  },
  // Where testTime is shown with fewer digits than count, it is in no window and order that it seems to be in.
  {
    cause: /^4\.2-(r6-next-from|fractions)$/,
    has: IS_FINER,
    follow:
      /^(4\.2-(r4-order|from-inclusive|to-exclusive|window|from_id|r5-exactly-once|fractions|fractions-finer)|6-same-object)$/,
  },
  { cause: /^4\.2-r4-order$/, follow: /^4\.2-r6-next-(from|from_id)$/, has: /^not each time/ },
  { cause: /^(9-prefix|2\.4-next|4\.2-r6-next-(target|to|from|from_id))$/, follow: WALKED },
  { cause: /^4\.2-r6-next-from_id$/, follow: /^4\.2-r6-next-from$/ },
  { cause: /^4\.2-r6-next-to$/, follow: /^4\.2-to-exclusive$/ },
  { cause: /^4\.2-r5-exactly-once$/, follow: /^(2\.4-(full-pages|next-no-empty-page)|4\.2-window)$/ },
  // A window that starts too late loses items in any spelling of its edges; one that ends too late gains some.
  {
    cause: /^4\.2-from-inclusive$/,
    has: ITEM,
    follow: /^4\.2-(fractions|fractions-finer|offsets|lowercase|window)$/,
    except: NOT_ITEM,
  },
  {
    cause: /^4\.2-to-exclusive$/,
    has: /^wanted: no item at or after/,
    follow: /^4\.2-(fractions|fractions-finer|offsets|r1-.*|window)$/,
    except: ITEM,
  },
  // A misread offset moves both edges, also those of next, and a misread fraction errs in both directions.
  {
    cause: /^4\.2-offsets$/,
    has: ITEM,
    follow: /^4\.2-(from-inclusive|to-exclusive|from_id|r1-.*|r5-.*|window)$/,
  },
  {
    cause: /^4\.2-fractions$/,
    has: [ITEM, NOT_ITEM],
    follow: /^4\.2-(from-inclusive|to-exclusive|from_id|r5-.*|window)$/,
  },
  { cause: /^4\.2-fractions$/, follow: /^4\.2-fractions-finer$/ },
  // If digits are cut, bounds within a millisecond are one, and an item there is on the other side of a bound.
  {
    cause: /^4\.2-fractions$/,
    has: [ITEM, NOT_ITEM],
    follow: /^4\.2-(r2-inverted|r5-exactly-once)$/,
    shows: /within a millisecond/,
    except: /in whole milliseconds/,
  },
  // If the data is finer than a recommendation covers, breaking it has further consequences.
  {
    cause: /^4\.2-fractions-finer$/,
    follow: /^4\.2-(window|from-inclusive|to-exclusive|offsets|from_id|r4-.*|r5-.*)$/,
    shows: /below a microsecond/,
    except: /with microseconds/,
  },
  {
    cause: /^4\.2-r1-zero-width$/,
    follow: /^4\.2-(to-exclusive|window)$/,
    except: /^wanted: (no item at or after|item # )/,
  },
  // Comparing bounds as text accepts inverted windows, and rejects valid ones as inverted.
  {
    cause: /^4\.2-r2-inverted$/,
    follow: /^4\.2-(offsets|fractions|fractions-finer|r1-zero-width)$/,
    has: /^answered 2/,
    shows: /^code invalid_time_range/,
  },
  // An item missing from a page concerns the window, not its edges.
  { cause: /^4\.2-window$/, follow: /^4\.2-from-inclusive$/, except: ITEM },
  // A window that ends before it begins contains no items.
  { cause: /^4\.2-r2-inverted$/, follow: /^4\.2-window$/, except: /^wanted: (item #|both)/ },
  // A wrong comparison with the cursor breaks traversal as well.
  {
    cause: /^4\.2-from_id$/,
    has: /^wanted: (# items, number|only items strictly|item # at TIME and # more)/,
    follow: /^(2\.4-next-no-empty-page|4\.2-(r5-.*|window))$/,
    except: /^wanted: (all # screenings|item # at TIME$)/,
  },
  { cause: /^4\.2-success$/, has: /^answered 401/, follow: /^5-valid-token$/ },
  // A token in the query is not in the header; a server that accepts any string verifies nothing; one that accepts an
  // altered payload verifies no signature.
  { cause: /^5-missing$/, follow: /^5-(scheme|garbage|query-token)$/, has: SERVED, shows: SERVED },
  { cause: /^5-garbage$/, follow: /^5-(tampered|forged|expired)$/, has: SERVED, shows: SERVED },
  { cause: /^5-forbidden-unknown$/, follow: /^5-forbidden$/ },
  // If error bodies have another form, their codes are missing everywhere.
  {
    cause: /^7\.[12]-body$/,
    has: /^code /,
    follow: /^7\.[12]-/,
    shows: /the status that is wanted/,
    except: /^answered \d+$|^answered 2/,
  },
  {
    cause: /^7\.[12]-body$/,
    follow: /^7\.[12]-/,
    shows: /the status that is wanted/,
    except: /^answered \d+$|^answered 2|^code /,
  },
  // A gateway that limits with another status writes a page of its own.
  { cause: /^7\.2-rate_limited$/, follow: /^7\.2-body$/, has: /^a rate limiter$/, except: /^answered 4/ },
  // A token that is issued for an undefined scope names no scope, or that one.
  {
    cause: /^7\.1-invalid_scope$/,
    follow: /^2\.[12]-scope$/,
    has: SERVED,
    shows: /^the same answer breaks 7\.1-invalid_scope$/,
    except: /nothing beyond "(.* )?screenings\.read\b/,
  },
  // An empty value is also a wrong value.
  {
    cause: /^7\.1-(invalid_client-id|unsupported_grant_type|invalid_scope|invalid_client-secret)$/,
    follow: /^7\.1-invalid_request-empty$/,
  },
  // Where the service crashes, it neither serves a valid request nor rejects another one.
  {
    cause: /^7\.2-no-unprovoked-5xx$/,
    follow: /^(4\.[12]-|5-|7\.1-(?!body)|7\.2-(invalid_|page_size|not_found))/,
    shows: /^answered 5|^got: a broken connection/,
    except: /^answered [1-4]|^got: (?!a broken connection)/,
  },
  { cause: /^6-complete$/, follow: /^6-envelope$/, has: /only events of/, shows: /of a source and id/ },
];

const BODY = '7.2-body';

/** Whether one requirement follows from another broken one, and not vice versa. */
export const followsFrom = (id: string, cause: string, evidence: Evidence): boolean =>
  canCause(cause, id, evidence) && !canCause(id, cause, evidence);

function canCause(cause: string, id: string, evidence: Evidence): boolean {
  const [before, features] = [evidence.get(cause)!, evidence.get(id)!];
  const inOneAnswer = features.has(`${SAME_ANSWER}${cause}`);
  const isPart = isLimited(cause, before) && !isLimited(id, features) && !shows(before, IS_FINER);
  if (id === cause || (!inOneAnswer && isPart)) return false;
  if (/^7\.2-/.test(id) && /^7\.2-/.test(cause) && isOfOneCode(evidence) && (id === BODY || cause === BODY))
    return id === BODY && shows(before, BARE);
  return (
    isRefusedAs(cause, id, evidence) ||
    CONSEQUENCES.some(
      (one) =>
        one.cause.test(cause) &&
        one.follow.test(id) &&
        [one.has ?? []].flat().every((words) => shows(before, words)) &&
        (!one.shows || shows(features, one.shows)) &&
        !(one.except && shows(features, one.except)),
    )
  );
}

/** An unusual error under a single requirement belongs to that requirement. */
const isOfOneCode = (evidence: Evidence): boolean =>
  [...evidence].filter(([id, features]) => /^7\.2-(?!body)/.test(id) && shows(features, BARE)).length === 1;
const BARE = /the status that is wanted|^no documented code|^code /;

const shows = (features: Features, words: RegExp): boolean =>
  [...features].some((feature) => words.test(feature));

/** Whether two have one cause: the same answer is wrong in the same way, or requests of one kind are rejected alike. */
export function areOne(id: string, other: string, evidence: Evidence): boolean {
  const [a, b] = [evidence.get(id)!, evidence.get(other)!];
  if ((isOfAnswers(id) && isServed(b)) || (isOfAnswers(other) && isServed(a))) return false;
  if (a.has(`${SAME_ANSWER}${other}`))
    return [...a].some((feature) => /^(got|answered|another|cut to)/.test(feature) && b.has(feature));
  if (a.has(HANGS) && b.has(HANGS)) return isOfTokens(id) === isOfTokens(other);
  const refusals = refusalsOf(id, a);
  return refusalsOf(other, b).some((refusal) => refusals.includes(refusal));
}

/** How each kind of request was wrongly rejected, such as `parameters: 422, no documented code`. */
function refusalsOf(id: string, features: Features): string[] {
  const all = [...features];
  const how = all.filter((feature) => /^(code |no documented code$)/.test(feature)).sort();
  const kinds = new Set(all.flatMap((feature) => (feature.startsWith(WANTED) ? kindOf(id, feature) : [])));
  return all
    .filter((feature) => /^answered [45]\d\d/.test(feature))
    .flatMap((answered) => [...kinds].map((kind) => `${kind}: ${answered}, ${how.join(', ')}`));
}

function kindOf(id: string, wanted: string): string[] {
  if (isOfTokens(id)) return [`token ${wanted}`];
  if (/unauthenticated/.test(wanted)) return ['authentication'];
  if (/# (invalid_|page_size)/.test(wanted)) return ['parameters'];
  if (/: #( without items)?$/.test(wanted)) return ['valid'];
  return [wanted];
}

/** Valid requests that are rejected alike under one other requirement follow from it; under several, from 4.2-success. */
function isRefusedAs(cause: string, id: string, evidence: Evidence): boolean {
  const refusal = refusalOfValid(evidence.get('4.2-success') ?? new Set());
  if (!refusal) return false;
  const alike = [...evidence.keys()].filter(
    (other) => other !== '4.2-success' && refusalOfValid(evidence.get(other)!) === refusal,
  );
  return alike.length === 1
    ? id === '4.2-success' && cause === alike[0]
    : cause === '4.2-success' && alike.includes(id);
}

/** How a valid request was rejected, if nothing else is broken. */
function refusalOfValid(features: Features): string | undefined {
  const all = [...features];
  const wanted = all.filter((feature) => feature.startsWith(WANTED));
  const answer = all.filter((feature) => /^(answered|code) /.test(feature)).sort();
  return answer.length > 0 && wanted.every((feature) => /: #( without items)?$/.test(feature))
    ? answer.join(', ')
    : undefined;
}

/** The levels of factors that a requirement covers. */
const OWN: Readonly<Record<string, RegExp>> = {
  '4.2-from_id': /^only with from_id/,
  '4.2-fractions': /^only times of # digits/,
  '4.2-offsets': /^only times (east|west) of UTC/,
  '4.2-r1-zero-width': /^only a window of no width/,
};

/** Whether it is broken only at levels of factors that it does not cover. */
const isLimited = (id: string, features: Features): boolean =>
  [...features].some((feature) => feature.startsWith('only ') && !OWN[id]?.test(feature));

/** Whether a request that must be rejected was accepted; the form of that answer is another matter. */
const isServed = (features: Features): boolean =>
  shows(features, SERVED) && shows(features, /^wanted: # (?!without items)[a-z_]{4,}/);

const isOfTokens = (id: string): boolean => /^(2\.[12]|4\.1|7\.1)/.test(id);

/** Requirements that are judged on every exchange. */
const isOfAnswers = (id: string): boolean => id.startsWith('2.');
