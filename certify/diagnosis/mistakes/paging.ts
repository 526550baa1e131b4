/** Mistakes in order, cursors, `next`, the time window and conversions of values (sections 2.4 and 4.2). */
import type { Mistakes } from './mistake.ts';

export const paging = {
  'the cursor forgets the id': {
    why: 'The next page begins after an instant instead of a cursor (testTime, id), so screenings of a tie across a page boundary are lost or repeated. A keyset cursor over one column is correct only if that column is unique. Timestamps are not, above all after a bulk import; page libraries that take a single sort key do this by default.',
    fix: 'Compare the pair (testTime, id) as a row, and put both parts into next.',
    right: `WHERE tenant_id = $1 AND (test_time, id) > ($from, $from_id) AND test_time < $to
ORDER BY test_time, id LIMIT $page_size + 1`,
    breaks: '4.2-r6-next-from_id 4.2-r5-exactly-once 4.2-from_id',
    when: /no from_id|inside a tie|rest of a tie/m,
  },
  'the pair of the cursor is compared in the wrong way': {
    why: 'from_id is read, but the page does not begin after (from, from_id): it repeats the cursor’s own item, leaves out later instants with smaller ids, or is rejected if the id does not exist. A row comparison was taken apart into two conditions joined by AND, or uses >=; or the item of the cursor is looked up first, and may have been deleted.',
    fix: 'Use one row comparison, strictly greater; if the store has none, write it out. The id of the cursor need not exist.',
    right: `WHERE test_time > $from OR (test_time = $from AND id > $from_id)   -- and never: test_time >= $from AND id > $from_id`,
    breaks: '4.2-from_id 4.2-r5-exactly-once',
    // A page that ignores from_id equals the one without it, as one from a cache would.
    when: /^wanted: (only items strictly after|each screening once)/m,
  },
  'the cursor loses digits of testTime': {
    why: 'next carries from (or to) with fewer fraction digits than the last item has, so the next page begins too early or too late, and items are repeated or lost. The time went through a type of milliseconds on its way into the URL: JavaScript’s Date, java.util.Date, Jackson’s or System.Text.Json’s shortened format, Go’s time.RFC3339.',
    fix: 'Format the cursor from the stored value itself with all its digits, or pass the stored text on.',
    right: `Go: t.Format(time.RFC3339Nano) · Java: DateTimeFormatter.ISO_INSTANT on an Instant
SQL: to_char(test_time, 'YYYY-MM-DD"T"HH24:MI:SS.USTZH:TZM') · never new Date(text).toISOString()`,
    breaks: '4.2-r6-next-from 4.2-r6-next-to',
    when: /^cut to/m,
  },
  'next is made of the wrong item': {
    why: 'next names a place other than the last item of its page: the first item, the request’s own from, or the extra row that was fetched to see whether more follow. Items repeat or are skipped. The page is cut to size after the cursor was taken, or the cursor is copied from the request.',
    fix: 'Cut the page first, then build next from its last item.',
    right: `const page = rows.slice(0, pageSize); const last = page.at(-1);
const next = rows.length > pageSize ? nextOf(last.testTime, last.id) : undefined;`,
    breaks: '4.2-r6-next-from 4.2-r6-next-from_id 4.2-r5-exactly-once',
    when: /^another instant|another fraction/m,
  },
  'next drops or alters what was asked': {
    why: 'next has lost to or pageSize, or carries other ones than the request: the walk leaves its window or changes its page size on the way. next is put together from defaults or from normalised values (the end of the day, now, the number of items on this page) in place of the request’s own parameters, or prints a time in another format: toString() of Java’s OffsetDateTime leaves out :00 seconds.',
    fix: 'Start from the request’s own query and replace from and from_id alone.',
    right: `const next = new URL(request.url); next.searchParams.set('from', last.testTime);
next.searchParams.set('from_id', String(last.id)); // to and pageSize stay as they came`,
    breaks: '4.2-r6-next-to 4.2-r6-next-pageSize 4.2-r6-next-from',
  },
  'the + of an offset is not encoded': {
    why: 'A + in a query stands for a blank. A next with +02:00 unencoded requests another time than it shows, and a server that reads the blank as a + accepts times that are not RFC 3339. URLs are put together as strings, or by an encoder for paths, which leaves + alone.',
    fix: 'Build queries with an encoder for form values, and refuse a time with a blank in it.',
    right: `new URLSearchParams({ from }) · Java: URLEncoder.encode(from, UTF_8) · Python: urlencode({"from": from_}) — all give %2B`,
    breaks: '4.2-r6-next-from 4.2-r6-next-to',
    when: /without its offset/m,
  },
  'next leads to where the server believes it is': {
    why: 'next has an internal host, http for https, lost the path prefix or the version, or leads to another resource; no client outside gets further than the first page. With a proxy or gateway in front, the service sees its own address: Host and scheme of the inner request, and a prefix that was stripped. Spring, ASP.NET and Express read X-Forwarded-* only where they are told to.',
    fix: 'Build URLs from a configured public base URL, or trust the proxy’s Forwarded headers explicitly.',
    right: `const next = new URL(\`\${config.publicBaseUrl}/v1/tenants/\${tenantId}/screenings?\${query}\`);
Spring: server.forward-headers-strategy=framework · Express: app.set('trust proxy', …)`,
    breaks: '4.2-r6-next-target 9-prefix 2.4-next-absolute',
  },
  'the Link header and links.next do not agree': {
    why: 'With more pages to come the header is missing, malformed, or holds another URL than links.next; or links.next is not a URL string. Clients that follow the header and those that follow links.next then walk differently. The two are made in two places, or the header by hand: <> forgotten, rel missing, a HAL-like object in links.next.',
    fix: 'Make the URL once and write it into both.',
    right: `Link: <https://api.example/v1/tenants/…/screenings?from=…&from_id=…>; rel="next"
{"items": […], "links": {"next": "https://api.example/v1/tenants/…/screenings?from=…&from_id=…"}}`,
    breaks: '4.2-r7-link 2.4-next',
    when: /next: (\{|null)|^got: (no )?Link/m,
  },
  'the walk ends before the window does': {
    why: 'A page has no next although more screenings follow; the client assumes that it has everything. A count, a limit of pages or a short page decides whether more follow, instead of fetching one more row.',
    fix: 'Fetch pageSize + 1 rows: more follow if and only if the extra one came.',
    right: `SELECT … ORDER BY test_time, id LIMIT $page_size + 1   -- the extra row is never shown`,
    breaks: '2.4-next 4.2-r5-exactly-once',
    when: /and no next|is missing, which/m,
  },
  'the final page still has a next': {
    why: 'On the last page next is null, empty, leads back to the beginning, or to a page with nothing on it; or the Link header stays. Clients loop, or send a superfluous request. The serializer writes members without a value, or next is set whenever a page is full.',
    fix: 'Leave the member and the header out where no further row came.',
    right: `Jackson: @JsonInclude(NON_NULL) · Go: Next string \`json:"next,omitempty"\` · next only if rows.length > pageSize`,
    breaks: '2.4-next-absent 4.2-r7-link-absent 2.4-next-no-empty-page 4.2-r5-exactly-once',
  },
  'a page depends on what was asked before it': {
    why: 'A next works once, for a time, for one token, or from one connection; a repeated request gets another page or none. Retries and restarts of a client then lose data. The cursor is state on the server (an open result set, an OFFSET, a session) in place of a place in the order.',
    fix: 'Put the whole cursor (from, from_id), to and pageSize into next, and answer each request only from its URL.',
    right: `GET …/screenings?from=<last testTime>&from_id=<last id>&to=…&pageSize=…   -- no OFFSET, no cursor table`,
    breaks: '4.2-r5-exactly-once 4.2-repeatable',
  },
  'the order is not (testTime, id)': {
    why: 'Items come newest first, by id, or in the order of storage; or ties are in the order in which the store finds them, which may differ each time. ORDER BY names one column, or none: then the plan decides, and a second replica or a parallel scan decides otherwise.',
    fix: 'Sort by both columns ascending in the query itself, over an index of the same columns.',
    right: `CREATE INDEX ON screening (tenant_id, test_time, id);
… ORDER BY test_time ASC, id ASC`,
    breaks: '4.2-r4-order 4.2-repeatable',
  },
  'times or ids are sorted as text': {
    why: 'Instants with other offsets or other numbers of digits, or ids of another length, are sorted wrongly or treated as outside the window. The column, or the value in a document store, is a string; "10" < "9", and 01:30+01:00 sorts after 00:45Z although it is earlier.',
    fix: 'Keep a column of instants (and one of integers) beside the text, and compare and sort by that.',
    right: `ALTER TABLE screening ADD at timestamptz GENERATED ALWAYS AS (…) STORED;  ORDER BY at, id  -- id bigint`,
    breaks: '4.2-r4-order 4.2-r2-inverted 4.2-window',
  },
  'the page size is not the one that was asked for': {
    why: 'Pages hold more than pageSize, another default than 100, or never the 1000 that are allowed; or 1 or 1000 itself is refused. A library’s own default or maximum is in force, bounds are compared with < for <=, or the extra row that tells whether more follow stays on the page.',
    fix: 'Read pageSize yourself (1 to 1000, default 100), fetch one more, show pageSize.',
    right: `const size = query.has('pageSize') ? integerWithin(query.get('pageSize'), 1, 1000) : 100;`,
    breaks: '4.2-pageSize-default 4.2-pageSize-bounds 2.4-items 2.4-full-pages',
  },
} satisfies Mistakes;

// -- windows ------------------------------------------------------------------------------------------

export const windows = {
  'a bound of the window is compared in the wrong way': {
    why: 'The window is half-open, [from, to): an item exactly at from belongs to it, one exactly at to does not. Here one of the two is reversed, on the first page or on later ones. BETWEEN includes both ends; moving to by a millisecond to turn <= into < loses finer instants.',
    fix: 'Write the two comparisons out, the same on every page.',
    right: `WHERE test_time >= $from AND test_time < $to   -- never BETWEEN`,
    breaks: '4.2-from-inclusive 4.2-window 4.2-to-exclusive 4.2-r1-zero-width',
  },
  'screenings that are not completed are returned': {
    why: 'The API returns completed screenings only (section 3). Here a page contains one that the target file lists as unfinished. The query selects by tenant and time, and not by the state of the screening.',
    fix: 'Put the condition on the state into the one query that all pages come from.',
    right: `WHERE tenant_id = $tenant AND state = 'completed' AND …`,
    breaks: '4.2-window',
    when: /^wanted: completed screenings only/m,
  },
  'times are cut before they are compared': {
    why: 'Fraction digits of from, to or the stored instants are dropped or rounded: items between the cut value and the true one are selected wrongly. A type of milliseconds (JavaScript’s Date, BSON dates, datetime of MySQL without (6), SQL Server’s datetime) stands between the request and the comparison, or in the store.',
    fix: 'Find out how many fraction digits the data has, then parse, compare and store with at least as many.',
    right: `microseconds: PostgreSQL timestamptz, MySQL DATETIME(6), SQL Server datetime2(7), Java Instant, Python datetime
nanoseconds: a bigint or numeric of nanoseconds beside the text -- PostgreSQL’s timestamptz and Python’s datetime end at microseconds`,
    breaks: '4.2-fractions 4.2-fractions-finer 4.2-from-inclusive 4.2-r4-order',
    when: /^instants that differ below a millisecond$/m,
  },
  'testTime is shown with fewer digits than it is stored and compared with': {
    why: 'Clients see another instant than the one that the server selects, sorts and pages by: a window or a cursor that begins at the testTime shown begins before the item, and items that seem to tie are not in the order of their ids. The serializer shortens what the database holds: to_json of Rails prints three digits, JavaScript’s toISOString and java.util.Date know no more, strftime and DateTime::ATOM print none.',
    fix: 'Print testTime and next with all the digits that the store compares, or store no more digits than are printed.',
    right: `Rails: ActiveSupport::JSON::Encoding.time_precision = 6, and t.iso8601(6) · Python: t.isoformat() · PHP: 'Y-m-d\TH:i:s.uP'
SQL: to_char(test_time, 'YYYY-MM-DD"T"HH24:MI:SS.USTZH:TZM'), or ALTER TABLE screening ALTER test_time TYPE timestamptz(3)`,
    breaks: '4.2-r6-next-from 4.2-fractions',
    when: /^more digits than are shown$/m,
  },
  'offsets are not reckoned with': {
    why: 'The same instant in another spelling selects other items: offsets are ignored, have their sign or minutes lost, are refused beyond some hours, or local time is printed as if it were UTC. Times are parsed into local date-times (LocalDateTime, naive datetime, timestamp without time zone), or offsets by hand.',
    fix: 'Parse with the platform’s own RFC 3339 parser into an instant and compare instants.',
    right: `OffsetDateTime.parse(from).toInstant() · datetime.fromisoformat(from).astimezone(UTC) · time.Parse(time.RFC3339Nano, from)
-- in SQL: timestamptz, never timestamp`,
    breaks: '4.2-offsets 4.2-window',
  },
  'a valid window is refused': {
    why: 'A request that is valid is not answered 200 with items: no width, very wide, far away, in the future, with many or few fraction digits, in lower case, after an id of 64 bits; or an empty result becomes 204, 206 or 404. Extra rules of a validator or a gateway, a parser with a fixed pattern, a conversion into a time zone in which the year 1 begins in the year 0 (Django REST framework), or a framework that takes emptiness for absence.',
    fix: 'Refuse only to < from and what is not RFC 3339; answer an empty window with 200 and items: [].',
    right: `{"items": [], "links": {}}   -- for from = to, for the year 3000, and for a window of decades`,
    breaks: '4.2-success 4.2-r1-zero-width 4.2-lowercase 4.2-fractions 4.2-from_id',
    when: /^answered (?!401)[234]/m,
  },
  'instants overflow the number that counts them': {
    why: 'Windows that reach far back or ahead select nothing, or the wrong years; or a fraction is read as a number of microseconds whatever its length. Nanoseconds in 64 bits end in 1677 and 2262, seconds in 32 bits in 1901 and 2038; two-digit years are read as 19xx; fractions are read as integers.',
    fix: 'Count in a type that spans the years 0001 to 9999, and read a fraction as a fraction.',
    right: `".5" is 500000 µs: pad to six digits before parsing · Go: compare time.Time, not UnixNano()`,
    breaks: '4.2-window 4.2-fractions 7.2-no-unprovoked-5xx',
    when: /^many are missing/m,
  },
  'an inverted window is not refused as one': {
    why: 'If to is earlier than from, the answer is an empty page or another error than 400 invalid_time_range, everywhere or after a cursor only. The store answers such a window with nothing by itself, so it is never checked; or the bounds are compared as text, with their offsets in it.',
    fix: 'Compare the two instants before the store is asked, on every kind of request.',
    right: `if (to.isBefore(from)) throw badRequest("invalid_time_range");`,
    breaks: '4.2-r2-inverted',
  },
  'a bound that is missing is made up': {
    why: 'Without from or to the request is served, from the epoch or until now, in place of a 400. The parameter is declared optional or has a default in the framework.',
    fix: 'Declare both required.',
    right: `OpenAPI: required: true · Spring: @RequestParam OffsetDateTime from (no defaultValue) · FastAPI: from_: datetime = Query(alias="from")`,
    breaks: '4.2-from-required 4.2-to-required',
    when: /^answered 2/m,
  },
  'the store’s copies do not hold the same': {
    why: 'A screening that exists is left out, or one is shown that does not, in every answer or in some: the answers do not agree with the data, or with one another. Replicas lag or have lost a row, a second cache holds old pages, a join or a filter drops rows, or deleted rows are not filtered.',
    fix: 'Read pages from one source, or pin a walk to a replica that has caught up; compare counts with the primary.',
    right: `SELECT count(*), max(id) FROM screening WHERE tenant_id = $1   -- on each replica, and compare`,
    breaks: '4.2-repeatable 4.2-window',
    // An item outside its window was selected wrongly, and the answer to another request came from a cache.
    when: /^wanted: (?!only items in|no item)(?![^]*^the octets of an answer)/m,
  },
  'large integers go through floating point': {
    why: 'Ids beyond 2^53 are rounded to a neighbour, are printed as strings or in exponents, or break the query: screenings seem to share an id. JSON.parse of JavaScript, a Number or double column, interface{} in Go, or int4 in between.',
    fix: 'Use 64-bit integers throughout and a JSON library that keeps them.',
    right: `Go: json.Decoder.UseNumber() · Node: ids as BigInt, printed without quotes · SQL: bigint · C#: long`,
    breaks: '2.3-id 2.3-id-stable 6-same-object 4.2-r6-next-from_id',
    when: /\b(id|from_id): ("|#)/m,
  },
  'a cache does not know what makes answers differ': {
    why: 'A cached page is served to a request that differs in pageSize, cursor, bounds, tenant or token; or pages invite shared caches to keep them. The key is made of part of the query, or of a normalised one, or the cache stands in front of the authentication.',
    fix: 'Key by tenant and the whole query, and check authentication first; send Cache-Control: no-store or private.',
    right: `key = [token.tenantId, path, sortedQuery(url)].join('\\n')   -- after the token was verified`,
    breaks:
      '5-not-shared-cache 5-missing 4.2-r3-one-tenant 4.2-from_id 4.2-r6-next-pageSize 4.2-offsets 4.2-r6-next-to 4.2-r5-exactly-once 2.3-tenantId 4.2-window 2.4-items 4.2-pageSize-default 4.2-from-inclusive 4.2-fractions',
    when: /^the octets of an answer|^got: Cache-Control/m,
  },
} satisfies Mistakes;
