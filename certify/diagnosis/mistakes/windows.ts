/** Mistakes of the time window and of what it selects (section 4.2), and of values on their way. */
import type { Mistake } from './mistake.ts';

export const windows: readonly Mistake[] = [
  {
    name: 'a bound of the window is compared in the wrong way',
    what: 'The window is half-open, [from, to): an item exactly at from belongs to it, one exactly at to does not. Here one of the two is the other way round, on the first page or on later ones.',
    why: 'BETWEEN takes both ends in; a to that is moved by a millisecond to make < of <= loses what is finer.',
    fix: 'Write the two comparisons out, the same on every page.',
    right: `WHERE test_time >= $from AND test_time < $to   -- never BETWEEN`,
    breaks: '4.2-from-inclusive 4.2-to-exclusive 4.2-r1-zero-width 4.2-window',
  },
  {
    name: 'times are cut before they are compared',
    what: 'Fraction digits of from, to or the stored instants are dropped or rounded: items between the cut value and the true one are selected wrongly.',
    why: 'A type of milliseconds (JavaScript’s Date, BSON dates, datetime of MySQL without (6), SQL Server’s datetime) stands between the request and the comparison, or in the store.',
    fix: 'Find out how many fraction digits the data has, then parse, compare and store with at least as many.',
    right: `microseconds: PostgreSQL timestamptz, MySQL DATETIME(6), SQL Server datetime2(7), Java Instant, Python datetime
nanoseconds: a bigint or numeric of nanoseconds beside the text -- PostgreSQL’s timestamptz and Python’s datetime end at microseconds`,
    breaks: '4.2-fractions 4.2-fractions-finer 4.2-from-inclusive 4.2-r4-order',
  },
  {
    name: 'offsets are not reckoned with',
    what: 'The same instant in another spelling selects other items: offsets are ignored, have their sign or minutes lost, are refused beyond some hours, or local time is printed as if it were UTC.',
    why: 'Times are parsed into local date-times (LocalDateTime, naive datetime, timestamp without time zone), or offsets by hand.',
    fix: 'Parse with the platform’s own RFC 3339 parser into an instant and compare instants.',
    right: `OffsetDateTime.parse(from).toInstant() · datetime.fromisoformat(from).astimezone(UTC) · time.Parse(time.RFC3339Nano, from)
-- in SQL: timestamptz, never timestamp`,
    breaks: '4.2-offsets 4.2-window',
  },
  {
    name: 'a valid window is refused',
    what: 'A request that is valid is answered otherwise than 200 with items: no width, very wide, far away, in the future, with many or few fraction digits, in lower case; or an empty result becomes 204, 206 or 404.',
    why: 'Extra rules of a validator or a gateway, a parser with a fixed pattern, or a framework that takes emptiness for absence.',
    fix: 'Refuse only to < from and what is not RFC 3339; answer an empty window with 200 and items: [].',
    right: `{"items": [], "links": {}}   -- for from = to, for the year 3000, and for a window of decades`,
    breaks: '4.2-success 4.2-r1-zero-width 4.2-lowercase 4.2-fractions',
    when: /^answered/m,
  },
  {
    name: 'instants overflow the number that counts them',
    what: 'Windows that reach far back or ahead select nothing, or the wrong years; or a fraction is read as a number of microseconds whatever its length.',
    why: 'Nanoseconds in 64 bits end in 1677 and 2262, seconds in 32 bits in 1901 and 2038; two-digit years are read as 19xx; fractions are read as integers.',
    fix: 'Count in a type that spans the years 0001 to 9999, and read a fraction as a fraction.',
    right: `".5" is 500000 µs: pad to six digits before parsing · Go: compare time.Time, not UnixNano()`,
    breaks: '4.2-window 4.2-fractions 7.2-no-unprovoked-5xx',
    when: /^many are missing|^asked with the year/m,
  },
  {
    name: 'an inverted window is not refused as one',
    what: 'Where to is earlier than from the answer is an empty page or another error than 400 invalid_time_range, everywhere or after a cursor only.',
    why: 'The store answers such a window with nothing by itself, so it is never checked; or the bounds are compared as text, with their offsets in it.',
    fix: 'Compare the two instants before the store is asked, on every kind of request.',
    right: `if (to.isBefore(from)) throw badRequest("invalid_time_range");`,
    breaks: '4.2-r2-inverted',
  },
  {
    name: 'a bound that is missing is made up',
    what: 'Without from or to the request is served, from the epoch or until now, in place of a 400.',
    why: 'The parameter is declared optional or has a default in the framework.',
    fix: 'Declare both required.',
    right: `OpenAPI: required: true · Spring: @RequestParam OffsetDateTime from (no defaultValue) · FastAPI: from_: datetime = Query(alias="from")`,
    breaks: '4.2-from-required 4.2-to-required',
  },
  {
    name: 'the store’s copies do not hold the same',
    what: 'A screening that exists is left out, or one is shown that does not, in every answer or in some: the answers do not agree with the data, or with one another.',
    why: 'Replicas lag or have lost a row, a second cache holds old pages, a join or a filter drops rows, deleted rows are not told apart.',
    fix: 'Read pages from one source, or pin a walk to a replica that has caught up; compare counts with the primary.',
    right: `SELECT count(*), max(id) FROM screening WHERE tenant_id = $1   -- on each replica, and compare`,
    breaks: '4.2-repeatable 4.2-window',
  },
  {
    name: 'large integers go through floating point',
    what: 'Ids beyond 2^53 are rounded to a neighbour, are printed as strings or in exponents, or break the query: screenings seem to share an id.',
    why: 'JSON.parse of JavaScript, a Number or double column, interface{} in Go, or int4 in between.',
    fix: 'Use 64-bit integers throughout and a JSON library that keeps them.',
    right: `Go: json.Decoder.UseNumber() · Node: ids as BigInt, printed without quotes · SQL: bigint · C#: long`,
    breaks: '2.3-id 2.3-id-stable 6-same-object 4.2-r6-next-from_id',
    when: /(id|from_id|data.id:?) (an integer of 1[5-9]|a string|\d)/m,
  },
  {
    name: 'a cache does not know what makes answers differ',
    what: 'A cached page is served to a request that differs in pageSize, cursor, bounds, tenant or token; or pages invite shared caches to keep them.',
    why: 'The key is made of part of the query, or of a normalised one, or the cache stands in front of the authentication.',
    fix: 'Key by tenant and the whole query, behind authentication; send Cache-Control: no-store or private.',
    right: `key = [token.tenantId, path, sortedQuery(url)].join('\\n')   -- after the token was verified`,
    breaks:
      '5-not-shared-cache 4.2-from_id 5-missing 4.2-r3-one-tenant 4.2-r6-next-pageSize 4.2-offsets 4.2-r6-next-to 4.2-r5-exactly-once 2.3-tenantId 4.2-window 2.4-items 4.2-pageSize-default 4.2-from-inclusive 4.2-fractions',
    when: /^the octets of an answer|^got: Cache-Control/m,
  },
];
