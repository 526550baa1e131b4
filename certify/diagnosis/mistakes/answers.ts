/** Mistakes in the form of answers (2.3, 2.4, 6), in methods (1), and in REST errors, rate limits and failures (7.2, 8). */
import type { Mistakes } from './mistake.ts';

export const answers = {
  'testTime is not RFC 3339': {
    why: 'testTime lacks its offset or its T, or is a number: no client can tell which instant is meant. The database’s own text form, a local date-time type, or a serializer’s default (epoch milliseconds in Jackson) is printed as it is.',
    fix: 'Print an offset date-time explicitly.',
    right: `Jackson: WRITE_DATES_AS_TIMESTAMPS=false with OffsetDateTime · Python: dt.isoformat() of an aware datetime
SQL: to_char(test_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
    breaks: '2.3-testTime',
  },
  'the serializer bends empty or single values': {
    why: 'items or links is null, missing, or of another type on some pages: on the empty one, on the last, or with a single item. XML-born converters unwrap arrays of one, nil slices become null in Go, Micronaut leaves out what is empty.',
    fix: 'Start from an empty array and an empty object, and always write both.',
    right: `Go: items := make([]Screening, 0) · Java: List.of(), Map.of() · Micronaut: also @JsonInclude(ALWAYS) on both
every page has "items": […] and "links": {…}`,
    breaks: '2.4-links 2.4-items',
    when: /^got: (items|links): (null|nothing|none|\{|\[)/m,
  },
  'an id is not the screening’s own': {
    why: 'The same screening has different ids in different answers, or two share one. The number of the row on the page, or a hash made on the way, is shown in place of the primary key.',
    fix: 'Show the stored primary key.',
    right: `SELECT id, test_time, … FROM screening   -- no row_number(), no generated id in the DTO`,
    breaks: '2.3-id-stable',
  },
  'the same screening looks different from answer to answer': {
    why: 'Members appear or vanish, or values change in form: null here and left out there, decimals rounded, a field of the data not shown. Two versions run in parallel, list and detail have serializers of their own, numbers go through floating point.',
    fix: 'One serializer for all answers; keep decimals as decimals.',
    right: `Java: BigDecimal · Python: simplejson(use_decimal=True) · release a new field on all instances together`,
    breaks: '2.3-object-stable',
  },
  'the octets or the type of an answer are not those of JSON': {
    why: 'The Content-Type is missing or wrong, the text is not UTF-8 or has a byte order mark, or a compressed body does not match its header. The platform’s default charset, a text helper in place of the JSON one, strings cut by bytes, a proxy that compresses twice.',
    fix: 'Answer by the framework’s JSON helper in UTF-8; cut text by characters.',
    right: `res.json(page) · Content-Type: application/json · Files and JVM: -Dfile.encoding=UTF-8`,
    breaks: '2.4-utf8 4.2-content-type 4.2-repeatable 2.1-access_token',
    when: /^got: no JSON/m,
  },
  'the tenants’ screenings are mixed': {
    why: 'A page holds items of another tenant, items whose tenantId is not the one of the path, or another tenant’s page as a whole. The condition on the tenant is missing in one of several queries or joins, or a cache or pool carries it over.',
    fix: 'Put the tenant into every query, or let the database do so (row-level security).',
    right: `CREATE POLICY own ON screening USING (tenant_id = current_setting('app.tenant')::uuid);`,
    breaks: '2.3-tenantId 4.2-r3-one-tenant',
  },
  'a method that would write does something': {
    why: 'POST, PUT, PATCH or DELETE changes what GET shows, or is answered as if it had. Generated CRUD routes (Spring Data REST, json-server, admin plugins) are left open, or a catch-all handler answers every method.',
    fix: 'Route only GET and HEAD, and answer other methods with 405 and Allow.',
    right: `405 Method Not Allowed, Allow: GET, HEAD   -- and a database role with SELECT only`,
    breaks: '1-read-only 1-read-only-refused',
  },
  'the envelope is no CloudEvent': {
    why: 'An event lacks one of specversion, id, source and type, has one of another type or name, or a pair (source, id) that another event has. Envelopes are put together by hand, or follow CloudEvents 0.3 or the names of another broker.',
    fix: 'Make events with the CloudEvents SDK in structured JSON mode.',
    right: `{"specversion": "1.0", "id": "…", "source": "/screenings", "type": "screening.completed", "time": "2026-03-01T12:00:00Z", "data": {…}}`,
    breaks: '6-envelope',
  },
  'an event and REST show one screening differently': {
    why: 'Names, values or precision of data differ from the REST object of the same id, or the object is not one of the tenant’s. Events and REST have serializers of their own, or the event is made before the record is final.',
    fix: 'Serialize once and use the same text on both transports.',
    right: `outbox: INSERT INTO event (id, json) SELECT id, json FROM screening WHERE id = $1   -- the JSON that GET returns`,
    breaks: '6-same-object',
  },
  'testTime is formatted again on one of the transports': {
    why: 'The event and the REST object have the same instant with different offsets or digits. One side stores only the instant and prints it in UTC or with fewer zeros; the other passes the captured text on. The dataset, which holds the text as captured, shows which side it is.',
    fix: 'Keep the captured text beside the instant, and print it on both transports.',
    right: `test_time_text text NOT NULL, test_time timestamptz GENERATED ALWAYS AS (…) STORED   -- print the first, compare the second`,
    breaks: '6-same-object 2.3-object-stable',
    when: /^the same instant in another spelling$/m,
  },
  'events and screenings are not the same set': {
    why: 'A screening has no event, or an event no screening. Publishing happens outside of the transaction that stores: a crash, a full queue or a rollback in between.',
    fix: 'Write an outbox row in the same transaction and publish from there until acknowledged.',
    right: `BEGIN; INSERT INTO screening …; INSERT INTO outbox …; COMMIT;   -- a relay sends, and deletes on ack`,
    breaks: '6-complete',
  },
} satisfies Mistakes;

// -- errors -------------------------------------------------------------------------------------------

export const refusals = {
  'the framework’s own error answers': {
    why: 'A refusal has the framework’s status and body: 422 with detail (FastAPI), problem details or timestamp and path (Spring, ASP.NET), an HTML page (Express, Flask). Validation, routing and authentication of the framework refuse before the handlers run, and each has an error handler of its own.',
    fix: 'Replace the error handlers of validation, router and authentication by one that writes the documented status and code.',
    right: `FastAPI: @app.exception_handler(RequestValidationError) · Spring: @RestControllerAdvice, AuthenticationEntryPoint, ErrorController
Express: app.use((error, req, res, next) => …) as the last · ASP.NET: InvalidModelStateResponseFactory`,
    breaks:
      '7.2-body 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-from-required 4.2-to-required 7.2-unauthenticated 7.2-forbidden 7.2-not_found 5-missing 5-scheme 5-garbage 5-tampered 5-forged 5-forbidden 5-forbidden-unknown 7.1-body 7.1-invalid_request-missing 7.1-invalid_request-malformed 7.1-invalid_request-empty 7.2-no-unprovoked-5xx',
    when: /^(an HTML page|problem details|the body of a framework|answered 422)$/m,
  },
  'a request that must be rejected gets no answer': {
    why: 'Valid requests are served, and others hang until the client gives up: connections and threads of both sides are held, and no client learns of its mistake. The handler rejects the request and never ends the response, an exception is lost in a promise or a callback, or the limiter of rejections (a tarpit) waits longer than any client.',
    fix: 'End the response on every path, and let one error handler answer what was thrown, also asynchronously.',
    right: `Express 4: app.get(path, (req, res, next) => handle(req, res).catch(next)) · Netty, Vert.x: response.end() on each branch`,
    breaks:
      '7.1-invalid_request-missing 7.1-unsupported_grant_type 7.1-invalid_scope 7.1-invalid_request-empty 7.1-invalid_request-duplicated 7.1-invalid_request-malformed 7.1-unauthorized_client 7.1-invalid_grant 4.1-post-only 4.1-no-query-credentials 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-from-required 4.2-to-required 4.2-r2-inverted 5-missing 5-scheme 5-garbage 5-tampered 5-forged 5-expired 5-query-token 5-forbidden 5-forbidden-unknown 7.2-unauthenticated 7.2-forbidden 7.2-not_found',
    when: /^no answer, twice$/m,
  },
  'errors do not carry the documented code': {
    why: 'An error of the REST API has no JSON body, no code, or a code in another spelling or place than the documented one, or a failure is reported as an empty page; clients cannot tell the causes apart. The framework’s or a gateway’s default error page answers, enums are printed by their constant’s name.',
    fix: 'One error writer for the whole API, also for what filters and the router refuse.',
    right: `{"code": "invalid_time_range", "message": "to is earlier than from"}   -- exactly these values, in lower case`,
    breaks: '7.2-body 7.2-server-error 7.2-unauthenticated 7.2-forbidden 7.2-rate_limited',
  },
  'the refusal is another than the one for its cause': {
    why: 'The request is refused, but with the code or status of another mistake: 422 for 400, invalid_request for invalid_time_range or page_size_out_of_range, and so on. Validation of the framework answers for all parameters alike.',
    fix: 'Distinguish syntax, time and range in your own validation.',
    right: `no integer: 400 invalid_request · no RFC 3339 or to < from: 400 invalid_time_range · outside 1 to 1000: 400 page_size_out_of_range
tenant not onboarded: 404 not_found`,
    breaks:
      '7.2-not_found 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-r2-inverted 4.2-from-required 4.2-to-required',
    when: /^answered 4/m,
  },
  'a tenant that is not onboarded is one without screenings': {
    why: 'The path of a tenant that is not onboarded is answered with an empty page in place of 404: its client takes a missing onboarding for a lack of screenings. The query finds no row, and nothing asks whether the tenant itself is there.',
    fix: 'Look the tenant up before its screenings.',
    right: `if (!(await tenants.isOnboarded(tenantId))) throw notFound(); // after the comparison with the token`,
    breaks: '7.2-not_found',
    when: /^answered 2/m,
  },
  'what is no integer is read as one': {
    why: 'pageSize or from_id with letters, exponents or blanks is read up to there, or ignored, in place of 400 invalid_request. parseInt reads as far as it can, Number of JavaScript (and Fastify, which coerces with it), Integer and Long parameters of Spring, and read of Haskell take 0x10, optional binding yields null on a failed conversion, Litestar reads null where a parameter is optional.',
    fix: 'Match the whole value before converting.',
    right: `if (!/^-?\\d+$/.test(value)) throw invalidRequest(name);`,
    breaks: '7.2-invalid_request',
    when: /^answered 2/m,
  },
  'what is no RFC 3339 is read as a time': {
    why: 'Times without offset, seconds or date, with impossible days or hours, with text after the time, or words such as now are accepted. Lenient parsers: new Date(), dateutil, strtotime, PostgreSQL’s own cast (which knows now, infinity, zones by name); fromisoformat of Python and time.Parse of Go take +01:60, and time.Parse +24:00; chrono of Rust takes U+2212 for the minus, TrimStrings of Laravel and get_argument of Tornado cut blanks off.',
    fix: 'Match the grammar first, then parse, and check that day and hour exist.',
    right: `/^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$/i   -- then ResolverStyle.STRICT or the like`,
    breaks: '7.2-invalid_time_range',
    when: /^answered 2/m,
  },
  'a page size out of range is mended': {
    why: '0, 1001 or a negative pageSize is answered with a page in place of 400 page_size_out_of_range. Clamping (Spring Data’s max-page-size), or 0 taken for absent.',
    fix: 'Reject the value instead of clamping it.',
    right: `if (size < 1n || size > 1000n) throw new BadRequest('page_size_out_of_range'); // before it is cut to 32 bits`,
    breaks: '7.2-page_size_out_of_range',
    when: /^answered 2/m,
  },
  'odd input makes the server fail': {
    why: 'A request that should be refused, or served, is answered 5xx or by a broken connection. A value that the parser lets through breaks further in: NUL in PostgreSQL text, integers beyond 64 bits, years that a date type has not, undecodable percent signs, a query or form that is no UTF-8 (Pyramid and Bottle decode it), such a header (Twisted and Bottle decode it, PyJWT encodes it after aiohttp, Doorkeeper looks it up), a client_id that a store reports as an error (go-oauth2). Or the error handler itself fails: with Accept: text/html Spring cannot write the object that an @ExceptionHandler returns.',
    fix: 'Validate at the edge, and turn what still throws on bad input into a 400.',
    right: `from_id: BigInt within 64 bits, else 400 · text with \\u0000: 400 · decodeURIComponent in try/catch: 400
Spring: ResponseEntity.badRequest().contentType(APPLICATION_JSON).body(error)`,
    breaks:
      '7.2-no-unprovoked-5xx 4.2-success 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-r2-inverted',
    when: /^wanted: (?![^]*^not each time$)[^]*^(answered 5(?!03)|got: a broken connection)/m,
  },
  'valid requests fail now and then': {
    why: 'One answer in many is 5xx, breaks off, or lacks something: a client meets it in every longer walk. One bad instance of several, a pool that is too small or its timeouts, keep-alive times shorter than the balancer’s.',
    fix: 'Compare instances; let the server’s idle timeout be longer than the balancer’s; finish requests before a shutdown.',
    right: `node: server.keepAliveTimeout = 65_000 (balancer: 60 s) · remove an instance from the balancer before it stops`,
    breaks: '7.2-no-unprovoked-5xx 4.1-success 4.2-success',
    when: /not each time/m,
  },
  'the rate limit does not say how long to wait': {
    why: 'A refusal for rate is not 429 rate_limited, or its Retry-After is missing, malformed, or not the time after which a request is served. Gateways answer 503 or a page of their own, or print milliseconds, dates of another format, or the epoch of the reset.',
    fix: 'Answer 429 with whole seconds, rounded up to when the limit really opens again.',
    right: `429 · Retry-After: 3 · {"code": "rate_limited"}   -- Math.ceil((resetAtMs - Date.now()) / 1000)`,
    breaks: '7.2-retry-after 7.2-rate_limited 7.2-retry-after-honest 7.2-no-unprovoked-5xx',
    // A 429 without the code is another mistake.
    when: /^(a rate limiter$|wanted: (# rate_limited(?![^]*^answered 429, the status)|Retry-After|a request served after))/m,
  },
} satisfies Mistakes;

// -- in the environment of an implementation, or in its target file ---------------------------------

export const environment = {
  'the clock of a proxy, or the service’s own, is wrong': {
    why: 'iat and exp do not agree with the Date header of the same answer. A proxy or a cache writes a Date of its own or keeps an old one, or the machine of the token endpoint has drifted.',
    fix: 'Compare the Date header with and without the proxy; synchronise the clocks, and pass the service’s own Date on.',
    right: `curl -sI $AUTH_URL; date -u   -- and in Varnish or nginx: no Date of its own, no stored token response`,
    breaks: '2.2-iat 2.1-expires_in 2.2-exp',
    when: /^got: iat: #$|by the clock of/m,
  },
  'the dataset of the target file is not what the tenant holds': {
    why: 'The pages agree with one another and not with the dataset: it is older or newer than the data. The tenant was written to after the dataset was made, or the ingest dropped, merged or altered lines (ids that two tenants share, digits that the store does not keep).',
    fix: 'Export the dataset again from the tenant, or leave `dataset` out: the properties then compare the pages with each other.',
    right: `SELECT count(*), min(test_time), max(test_time) FROM screening WHERE tenant_id = $1   -- and: wc -l dataset.ndjson`,
    breaks: '2.3-object-stable 4.2-from-inclusive 4.2-window 6-same-object 4.2-r5-exactly-once',
    when: /the dataset (holds|says|has)/m,
  },
  'the tenant holds screenings of an earlier run, or is written to during this one': {
    why: 'Screenings appear or vanish between two requests, or ids of an earlier ingest already exist. A scratch tenant was kept, a feed or another test writes to it, or a clean-up runs at the same time.',
    fix: 'Give the kit a tenant of its own, emptied before the ingest, with no feed.',
    right: `DELETE FROM screening WHERE tenant_id = $scratch   -- before each run, and no two runs on one tenant`,
    breaks: '1-read-only 2.3-id-stable 4.2-repeatable',
  },
  'a gateway before the service refuses the request': {
    why: 'The rejection does not come from the service: it is an HTML page or a plain text, for requests that the service never saw. nginx, HAProxy, a web application firewall or a CDN refuses odd paths, long headers, methods or rates by itself, in its own words and statuses.',
    fix: 'Look for the request id in the service’s log. Where it is missing, configure the gateway’s error page, or let the request through.',
    right: `nginx: error_page 400 403 404 414 @json;  limit_req_status 429;  · HAProxy: http-errors with JSON files`,
    breaks:
      '7.2-body 7.2-rate_limited 7.2-retry-after 7.2-no-unprovoked-5xx 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 7.2-unauthenticated 7.2-forbidden 7.2-not_found 5-missing 5-scheme 5-garbage 5-forbidden 5-forbidden-unknown 4.2-success 4.2-offsets 4.2-fractions 4.1-success 7.1-body 7.1-invalid_request-malformed 7.1-invalid_client-secret',
    when: /^an HTML page$/m,
  },
  'the service was deployed or restarted during the run': {
    why: 'Requests fail for some seconds, and the same requests are served before and after. Instances are replaced one by one, and connections or tokens of the old ones end with them.',
    fix: 'Compare the times of the failures with the deployments, and run again. If it was one: drain instances before they stop.',
    right: `kubectl rollout history deployment/screenings   -- preStop: sleep, readiness probe, keys shared by all instances`,
    breaks: '7.2-no-unprovoked-5xx 4.2-success 4.1-success 5-valid-token 2.3-object-stable',
    when: /^not each time$|^got: a broken connection/m,
  },
  'something else uses the same client': {
    why: 'The quota is spent, or the token is revoked, by requests that are not of this run. A nightly job, a second run or a colleague uses the same client_id, and limits or tokens are counted by client.',
    fix: 'Give the kit a client of its own, and run again while nothing else uses it.',
    right: `SELECT count(*) FROM access_log WHERE client_id = $1 AND at BETWEEN $start AND $end   -- against requests of the report`,
    breaks: '7.2-retry-after-honest 5-valid-token 7.2-rate_limited',
  },
} satisfies Mistakes;
