/**
 * Decides which broken requirement follows from which other: if one answer is wrong in the same way for both, or if
 * breaking the cause makes the other impossible. Derived from the specification. In doubt a requirement is its own
 * cause: an extra cause costs less than a mistake hidden under another one.
 */
import { FINER, HANGS, SAME_ANSWER, WANTED, type Evidence, type Features } from './features.ts';

/** If the first is broken, the second breaks too, where these features were seen. */
type Consequence = readonly [cause: RegExp, follow: RegExp, where?: Where];

interface Where {
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
  [/^1-read-only$/, /^1-read-only-refused$/],
  [/^2\.1-access_token$/, /^(2\.2-|4\.1-success)/],
  [/^2\.1-expires_in$/, /^2\.1-expires_in-3600$/],
  [/^2\.2-(exp|iat)$/, /^2\.1-expires_in/],
  [/^2\.1-scope$/, /^2\.2-scope$/],
  // The answer that grants an unknown scope names another one than was requested.
  [/^7\.1-invalid_scope$/, /^2\.[12]-scope$/, { has: SERVED, shows: /^got: scope: "/ }],
  [/^2\.2-sub$/, /^2\.2-sub-client$/],
  // The path of a tenant that has no id.
  [/^2\.2-tenant_id$/, /^(5-one-tenant|4\.2-success)$/, { has: /^got: tenant_id: (?!"?UUID)/ }],
  // An answer of another type, such as HTML, has no members.
  [/^4\.1-content-type$/, /^2\.1-/, { shows: /^got: no JSON/ }],
  [/^4\.2-content-type$/, /^(2\.4-|4\.2-repeatable$)/, { shows: /^got: no JSON/ }],
  // Ids that change, items of another tenant, malformed pages, and a different answer each time break every requirement
  // on the items returned.
  [/^(2\.3-(id-stable|tenantId)|2\.4-items|4\.2-(repeatable|r3-one-tenant))$/, RETURNED],
  [/^4\.2-repeatable$/, /^(2\.4-items|4\.2-(r4-order|pageSize-default))$/],
  // An item that cannot be identified is missing wherever it is expected.
  [/^2\.3-(id|testTime)$/, RETURNED, { shows: /is missing at the beginning/ }],
  [/^2\.3-id-stable$/, /^(2\.3-object-stable|4\.2-(r[34]-.*|r6-next-from_id))$/],
  [/^2\.3-tenantId$/, /^4\.2-r3-one-tenant$/],
  [/^2\.4-links$/, /^(2\.4-next|4\.2-(r5-exactly-once|r7-link-absent|window))$/],
  [/^2\.4-items$/, /^4\.2-(pageSize-default|r6-next-pageSize)$/],
  [/^2\.4-utf8$/, /^2\.3-object-stable$/],
  [/^2\.4-next-absent$/, /^4\.2-r1-zero-width$/],
  [/^4\.2-r6-next-pageSize$/, /^(2\.4-(full-pages|items)|4\.2-pageSize-default)$/],
  // If pages overlap or go back, the order is broken from page to page.
  [
    /^4\.2-(r5-exactly-once|from_id|offsets|r6-next-(from|from_id|to))$/,
    /^4\.2-r4-order$/,
    { shows: /^(repeated|misplaced): first of a page/ },
  ],
  [/^9-prefix$/, /^4\.2-r6-next-target$/],
  // A wrong order or a wrong next breaks every walk.
  [/^4\.2-r4-order$/, RETURNED, { has: /^misplaced: (within|inside)/, except: IS_FINER }],
  // Where testTime is shown with fewer digits than count, it is in no window and order that it seems to be in.
  [
    /^4\.2-(r6-next-from|fractions)$/,
    /^(4\.2-(r4-order|from-inclusive|to-exclusive|window|from_id|r5-exactly-once|fractions|fractions-finer)|6-same-object)$/,
    { has: IS_FINER },
  ],
  [/^4\.2-r4-order$/, /^4\.2-r6-next-(from|from_id)$/, { has: /^not each time/ }],
  [/^(9-prefix|2\.4-next|4\.2-r6-next-(target|to|from|from_id))$/, WALKED],
  [/^4\.2-r6-next-from_id$/, /^4\.2-r6-next-from$/],
  [/^4\.2-r6-next-to$/, /^4\.2-to-exclusive$/],
  [/^4\.2-r5-exactly-once$/, /^(2\.4-(full-pages|next-no-empty-page)|4\.2-window)$/],
  // A window that starts too late loses items in any spelling of its edges; one that ends too late gains some.
  [
    /^4\.2-from-inclusive$/,
    /^4\.2-(fractions|fractions-finer|offsets|lowercase|window)$/,
    { has: ITEM, except: NOT_ITEM },
  ],
  [
    /^4\.2-to-exclusive$/,
    /^4\.2-(fractions|fractions-finer|offsets|r1-.*|window)$/,
    { has: /^wanted: no item at or after/, except: ITEM },
  ],
  // A misread offset moves both edges, also those of next, and a misread fraction errs in both directions.
  [/^4\.2-offsets$/, /^4\.2-(from-inclusive|to-exclusive|from_id|r1-.*|r5-.*|window)$/, { has: ITEM }],
  [
    /^4\.2-fractions$/,
    /^4\.2-(from-inclusive|to-exclusive|from_id|r5-.*|window)$/,
    { has: [ITEM, NOT_ITEM] },
  ],
  [/^4\.2-fractions$/, /^4\.2-fractions-finer$/],
  // If digits are cut, bounds within a millisecond are one, and an item there is on the other side of a bound.
  [
    /^4\.2-fractions$/,
    /^4\.2-(r2-inverted|r5-exactly-once)$/,
    { has: [ITEM, NOT_ITEM], shows: /within a millisecond/, except: /in whole milliseconds/ },
  ],
  // If the data is finer than a recommendation covers, breaking it has further consequences.
  [
    /^4\.2-fractions-finer$/,
    /^4\.2-(window|from-inclusive|to-exclusive|offsets|from_id|r4-.*|r5-.*)$/,
    { shows: /below a microsecond/, except: /with microseconds/ },
  ],
  [
    /^4\.2-r1-zero-width$/,
    /^4\.2-(to-exclusive|window)$/,
    { except: /^wanted: (no item at or after|item # )/ },
  ],
  // Comparing bounds as text accepts inverted windows, and rejects valid ones as inverted.
  [
    /^4\.2-r2-inverted$/,
    /^4\.2-(offsets|fractions|fractions-finer|r1-zero-width)$/,
    { has: /^answered 2/, shows: /^code invalid_time_range/ },
  ],
  // An item missing from a page concerns the window, not its edges.
  [/^4\.2-window$/, /^4\.2-from-inclusive$/, { except: ITEM }],
  // A window that ends before it begins contains no items.
  [/^4\.2-r2-inverted$/, /^4\.2-window$/, { except: /^wanted: (item #|both)/ }],
  // A wrong comparison with the cursor breaks traversal as well.
  [
    /^4\.2-from_id$/,
    /^(2\.4-next-no-empty-page|4\.2-(r5-.*|window))$/,
    {
      has: /^wanted: (# items, number|only items strictly|item # at TIME and # more)/,
      except: /^wanted: (all # screenings|item # at TIME$)/,
    },
  ],
  [/^4\.2-success$/, /^5-valid-token$/, { has: /^answered 401/ }],
  // A token in the query is not in the header; a server that accepts any string verifies nothing; one that accepts an
  // altered payload verifies no signature.
  [/^5-missing$/, /^5-(scheme|garbage|query-token)$/, { has: SERVED, shows: SERVED }],
  [/^5-garbage$/, /^5-(tampered|forged|expired)$/, { has: SERVED, shows: SERVED }],
  [/^5-forbidden-unknown$/, /^5-forbidden$/],
  // If error bodies have another form, their codes are missing everywhere.
  [
    /^7\.[12]-body$/,
    /^7\.[12]-/,
    { has: /^code /, shows: /the status that is wanted/, except: /^answered \d+$|^answered 2/ },
  ],
  [
    /^7\.[12]-body$/,
    /^7\.[12]-/,
    { shows: /the status that is wanted/, except: /^answered \d+$|^answered 2|^code / },
  ],
  // A gateway that limits with another status writes a page of its own.
  [/^7\.2-rate_limited$/, /^7\.2-body$/, { has: /^a rate limiter$/, except: /^answered 4/ }],
  // A token that is issued for an undefined scope names no scope, or that one.
  [
    /^7\.1-invalid_scope$/,
    /^2\.[12]-scope$/,
    {
      has: SERVED,
      shows: /^the same answer breaks 7\.1-invalid_scope$/,
      except: /nothing beyond "(.* )?screenings\.read\b/,
    },
  ],
  // An empty value is also a wrong value.
  [
    /^7\.1-(invalid_client-id|unsupported_grant_type|invalid_scope|invalid_client-secret)$/,
    /^7\.1-invalid_request-empty$/,
  ],
  // Where the service crashes, it neither serves a valid request nor rejects another one.
  [
    /^7\.2-no-unprovoked-5xx$/,
    /^(4\.[12]-|5-|7\.1-(?!body)|7\.2-(invalid_|page_size|not_found))/,
    {
      shows: /^answered 5|^got: a broken connection/,
      except: /^answered [1-4]|^got: (?!a broken connection)/,
    },
  ],
  [/^6-complete$/, /^6-envelope$/, { has: /only events of/, shows: /of a source and id/ }],
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
      ([first, follow, { has = [], shows: own, except } = {}]) =>
        first.test(cause) &&
        follow.test(id) &&
        [has].flat().every((words) => shows(before, words)) &&
        (!own || shows(features, own)) &&
        !(except && shows(features, except)),
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
