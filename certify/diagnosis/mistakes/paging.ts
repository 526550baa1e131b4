/** Mistakes in order, cursors and `next` (sections 2.4 and 4.2). */
import type { Mistake } from './mistake.ts';

export const paging: readonly Mistake[] = [
  {
    name: 'the cursor forgets the id',
    what: 'The next page begins after an instant instead of a cursor (testTime, id), so screenings of a tie across a page boundary are lost or repeated.',
    why: 'A keyset cursor over one column is correct only if that column is unique. Timestamps are not, above all after a bulk import; page libraries that take a single sort key do this by default.',
    fix: 'Compare the pair (testTime, id) as a row, and put both parts into next.',
    right: `WHERE tenant_id = $1 AND (test_time, id) > ($from, $from_id) AND test_time < $to
ORDER BY test_time, id LIMIT $page_size + 1`,
    breaks: '4.2-r6-next-from_id 4.2-r5-exactly-once 4.2-from_id',
    when: /no from_id|inside a tie|rest of a tie/m,
  },
  {
    name: 'the pair of the cursor is compared in the wrong way',
    what: 'from_id is read, but the page does not begin after (from, from_id): it repeats the cursor’s own item, leaves out later instants with smaller ids, or is rejected if the id does not exist.',
    why: 'A row comparison was taken apart into two conditions joined by AND, or uses >=; or the item of the cursor is looked up first, and may have been deleted.',
    fix: 'Use one row comparison, strictly greater; if the store has none, write it out. The id of the cursor need not exist.',
    right: `WHERE test_time > $from OR (test_time = $from AND id > $from_id)   -- and never: test_time >= $from AND id > $from_id`,
    breaks: '4.2-from_id 4.2-r5-exactly-once',
  },
  {
    name: 'the cursor loses digits of testTime',
    what: 'next carries from (or to) with fewer fraction digits than the last item has, so the next page begins too early or too late, and items are repeated or lost.',
    why: 'The time went through a type of milliseconds on its way into the URL: JavaScript’s Date, java.util.Date, Jackson’s or System.Text.Json’s shortened format, Go’s time.RFC3339.',
    fix: 'Format the cursor from the stored value itself with all its digits, or pass the stored text on.',
    right: `Go: t.Format(time.RFC3339Nano) · Java: DateTimeFormatter.ISO_INSTANT on an Instant
SQL: to_char(test_time, 'YYYY-MM-DD"T"HH24:MI:SS.USTZH:TZM') · never new Date(text).toISOString()`,
    breaks: '4.2-r6-next-from 4.2-r6-next-to',
    when: /^cut to/m,
  },
  {
    name: 'next is made of the wrong item',
    what: 'next names a place other than the last item of its page: the first item, the request’s own from, or the extra row that was fetched to see whether more follow. Items repeat or are skipped.',
    why: 'The page is cut to size after the cursor was taken, or the cursor is copied from the request.',
    fix: 'Cut the page first, then build next from its last item.',
    right: `const page = rows.slice(0, pageSize); const last = page.at(-1);
const next = rows.length > pageSize ? nextOf(last.testTime, last.id) : undefined;`,
    breaks: '4.2-r6-next-from 4.2-r6-next-from_id 4.2-r5-exactly-once',
    when: /^another instant|another fraction/m,
  },
  {
    name: 'next drops or alters what was asked',
    what: 'next has lost to or pageSize, or carries other ones than the request: the walk leaves its window or changes its page size on the way.',
    why: 'next is put together from defaults or from normalised values (the end of the day, now, the number of items on this page) in place of the request’s own parameters.',
    fix: 'Start from the request’s own query and replace from and from_id alone.',
    right: `const next = new URL(request.url); next.searchParams.set('from', last.testTime);
next.searchParams.set('from_id', String(last.id)); // to and pageSize stay as they came`,
    breaks: '4.2-r6-next-to 4.2-r6-next-pageSize 4.2-r6-next-from',
  },
  {
    name: 'the + of an offset is not encoded',
    what: 'A + in a query stands for a blank. A next with +02:00 unencoded requests another time than it shows, and a server that reads the blank as a + accepts times that are not RFC 3339.',
    why: 'URLs are put together as strings, or by an encoder for paths, which leaves + alone.',
    fix: 'Build queries with an encoder for form values, and refuse a time with a blank in it.',
    right: `new URLSearchParams({ from }) · Java: URLEncoder.encode(from, UTF_8) · Python: urlencode({"from": from_}) — all give %2B`,
    breaks: '4.2-r6-next-from 4.2-r6-next-to',
    when: /T\S* \d\d:\d\d|without its offset/m,
  },
  {
    name: 'next leads to where the server believes it is',
    what: 'next has an internal host, http for https, lost the path prefix or the version, or leads to another resource; no client outside gets further than the first page.',
    why: 'With a proxy or gateway in front, the service sees its own address: Host and scheme of the inner request, and a prefix that was stripped. Spring, ASP.NET and Express read X-Forwarded-* only where they are told to.',
    fix: 'Build URLs from a configured public base URL, or trust the proxy’s Forwarded headers explicitly.',
    right: `const next = new URL(\`\${config.publicBaseUrl}/v1/tenants/\${tenantId}/screenings?\${query}\`);
Spring: server.forward-headers-strategy=framework · Express: app.set('trust proxy', …)`,
    breaks: '4.2-r6-next-target 9-prefix 2.4-next-absolute',
  },
  {
    name: 'the Link header and links.next do not agree',
    what: 'With more pages to come the header is missing, malformed, or holds another URL than links.next; or links.next is not a URL string. Clients that follow the header and those that follow links.next then walk differently.',
    why: 'The two are made in two places, or the header by hand: <> forgotten, rel missing, a HAL-like object in links.next.',
    fix: 'Make the URL once and write it into both.',
    right: `Link: <https://api.example/v1/tenants/…/screenings?from=…&from_id=…>; rel="next"
{"items": […], "links": {"next": "https://api.example/v1/tenants/…/screenings?from=…&from_id=…"}}`,
    breaks: '4.2-r7-link 2.4-next',
    when: /next (an object|null)|^got: (no )?Link/m,
  },
  {
    name: 'the walk ends before the window does',
    what: 'A page has no next although more screenings follow; the client assumes that it has everything.',
    why: 'A count, a limit of pages or a short page decides whether more follow, instead of fetching one more row.',
    fix: 'Fetch pageSize + 1 rows: more follow if and only if the extra one came.',
    right: `SELECT … ORDER BY test_time, id LIMIT $page_size + 1   -- the extra row is never shown`,
    breaks: '2.4-next 4.2-r5-exactly-once',
    when: /^no next after it|is missing, which/m,
  },
  {
    name: 'the final page still has a next',
    what: 'On the last page next is null, empty, leads back to the beginning, or to a page with nothing on it; or the Link header stays. Clients loop, or send a superfluous request.',
    why: 'The serializer writes members without a value, or next is set whenever a page is full.',
    fix: 'Leave the member and the header out where no further row came.',
    right: `Jackson: @JsonInclude(NON_NULL) · Go: Next string \`json:"next,omitempty"\` · next only if rows.length > pageSize`,
    breaks: '2.4-next-absent 4.2-r7-link-absent 2.4-next-no-empty-page 4.2-r5-exactly-once',
  },
  {
    name: 'a page depends on what was asked before it',
    what: 'A next works once, for a time, for one token, or from one connection; a repeated request gets another page or none. Retries and restarts of a client then lose data.',
    why: 'The cursor is state on the server (an open result set, an OFFSET, a session) in place of a place in the order.',
    fix: 'Put the whole cursor (from, from_id), to and pageSize into next, and answer each request only from its URL.',
    right: `GET …/screenings?from=<last testTime>&from_id=<last id>&to=…&pageSize=…   -- no OFFSET, no cursor table`,
    breaks: '4.2-r5-exactly-once 4.2-repeatable',
  },
  {
    name: 'the order is not (testTime, id)',
    what: 'Items come newest first, by id, or in the order of storage; or ties are in the order in which the store finds them, which may differ each time.',
    why: 'ORDER BY names one column, or none: then the plan decides, and a second replica or a parallel scan decides otherwise.',
    fix: 'Sort by both columns ascending in the query itself, over an index of the same columns.',
    right: `CREATE INDEX ON screening (tenant_id, test_time, id);
… ORDER BY test_time ASC, id ASC`,
    breaks: '4.2-r4-order 4.2-repeatable',
  },
  {
    name: 'times or ids are sorted as text',
    what: 'Instants with other offsets or other numbers of digits, or ids of another length, are sorted wrongly or treated as outside the window.',
    why: 'The column, or the value in a document store, is a string; "10" < "9", and 01:30+01:00 sorts after 00:45Z although it is earlier.',
    fix: 'Keep a column of instants (and one of integers) beside the text, and compare and sort by that.',
    right: `ALTER TABLE screening ADD at timestamptz GENERATED ALWAYS AS (…) STORED;  ORDER BY at, id  -- id bigint`,
    breaks: '4.2-r4-order 4.2-r2-inverted 4.2-window',
  },
  {
    name: 'the page size is not the one that was asked for',
    what: 'Pages hold more than pageSize, another default than 100, or never the 1000 that are allowed; or 1 or 1000 itself is refused.',
    why: 'A library’s own default or maximum is in force, bounds are compared with < for <=, or the extra row that tells whether more follow stays on the page.',
    fix: 'Read pageSize yourself (1 to 1000, default 100), fetch one more, show pageSize.',
    right: `const size = query.has('pageSize') ? integerWithin(query.get('pageSize'), 1, 1000) : 100;`,
    breaks: '4.2-pageSize-default 4.2-pageSize-bounds 2.4-items 2.4-full-pages',
  },
];
