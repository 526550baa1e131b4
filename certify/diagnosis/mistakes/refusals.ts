/** Mistakes in REST errors, rate limits and failures (sections 7.2 and 8). */
import type { Mistake } from './mistake.ts';

export const refusals: readonly Mistake[] = [
  {
    name: 'the framework’s own error answers',
    what: 'A refusal has the framework’s status and body: 422 with detail (FastAPI), problem details or timestamp and path (Spring, ASP.NET), an HTML page (Express, Flask).',
    why: 'Validation, routing and authentication of the framework refuse before the handlers run, and each has an error handler of its own.',
    fix: 'Replace the error handlers of validation, router and authentication by one that writes the documented status and code.',
    right: `FastAPI: @app.exception_handler(RequestValidationError) · Spring: @RestControllerAdvice, AuthenticationEntryPoint, ErrorController
Express: app.use((error, req, res, next) => …) as the last · ASP.NET: InvalidModelStateResponseFactory`,
    breaks:
      '7.2-body 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-from-required 4.2-to-required 7.2-unauthenticated 7.2-forbidden 7.2-not_found 5-missing 5-scheme 5-garbage 5-tampered 5-forged 5-forbidden 5-forbidden-unknown 7.1-body 7.1-invalid_request-missing 7.1-invalid_request-malformed 7.1-invalid_request-empty 7.2-no-unprovoked-5xx',
    when: /^(an HTML page|problem details|the body of a framework|answered 422)$/m,
  },
  {
    name: 'errors do not carry the documented code',
    what: 'An error of the REST API has no JSON body, no code, or a code in another spelling or place than the documented one, or a failure is reported as an empty page; clients cannot tell the causes apart.',
    why: 'The framework’s or a gateway’s default error page answers, enums are printed by their constant’s name.',
    fix: 'One error writer for the whole API, also for what filters and the router refuse.',
    right: `{"code": "invalid_time_range", "message": "to is earlier than from"}   -- exactly these values, in lower case`,
    breaks: '7.2-body 7.2-server-error 7.2-unauthenticated 7.2-forbidden 7.2-rate_limited',
  },
  {
    name: 'the refusal is another than the one for its cause',
    what: 'The request is refused, but with the code or status of another mistake: 422 for 400, invalid_request for invalid_time_range or page_size_out_of_range, and so on.',
    why: 'Validation of the framework answers for all parameters alike.',
    fix: 'Distinguish syntax, time and range in your own validation.',
    right: `no integer: 400 invalid_request · no RFC 3339 or to < from: 400 invalid_time_range · outside 1 to 1000: 400 page_size_out_of_range
tenant not onboarded: 404 not_found`,
    breaks:
      '7.2-not_found 7.2-invalid_request 7.2-invalid_time_range 7.2-page_size_out_of_range 4.2-r2-inverted',
    when: /^answered [45]/m,
  },
  {
    name: 'what is no integer is read as one',
    what: 'pageSize or from_id with letters, exponents or blanks is read up to there, or ignored, in place of 400 invalid_request.',
    why: 'parseInt reads as far as it can, optional binding yields null on a failed conversion.',
    fix: 'Match the whole value before converting.',
    right: `if (!/^-?\\d+$/.test(value)) throw invalidRequest(name);`,
    breaks: '7.2-invalid_request',
    when: /^answered 2/m,
  },
  {
    name: 'what is no RFC 3339 is read as a time',
    what: 'Times without offset, seconds or date, with impossible days or hours, with text after the time, or words such as now are accepted.',
    why: 'Lenient parsers: new Date(), dateutil, strtotime, PostgreSQL’s own cast (which knows now, infinity, zones by name).',
    fix: 'Match the grammar first, then parse, and check that day and hour exist.',
    right: `/^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:\\d\\d)$/i   -- then ResolverStyle.STRICT or the like`,
    breaks: '7.2-invalid_time_range',
    when: /^answered 2/m,
  },
  {
    name: 'a page size out of range is mended',
    what: '0, 1001 or a negative pageSize is answered with a page in place of 400 page_size_out_of_range.',
    why: 'Clamping (Spring Data’s max-page-size), or 0 taken for absent.',
    fix: 'Reject the value instead of clamping it.',
    right: `if (size < 1n || size > 1000n) throw new BadRequest('page_size_out_of_range'); // before it is cut to 32 bits`,
    breaks: '7.2-page_size_out_of_range',
    when: /^answered 2/m,
  },
  {
    name: 'odd input makes the server fail',
    what: 'A request that should be refused, or served, is answered 5xx or by a broken connection.',
    why: 'A value that the parser lets through breaks further in: NUL in PostgreSQL text, integers beyond 64 bits, years that a date type has not, undecodable percent signs.',
    fix: 'Validate at the edge, and turn what still throws on bad input into a 400.',
    right: `from_id: BigInt within 64 bits, else 400 · text with \\u0000: 400 · decodeURIComponent in try/catch: 400`,
    breaks: '7.2-no-unprovoked-5xx',
  },
  {
    name: 'valid requests fail now and then',
    what: 'One answer in many is 5xx, breaks off, or lacks something: a client meets it in every longer walk.',
    why: 'One bad instance behind the balancer, timeouts of a pool, keep-alive times shorter than the balancer’s.',
    fix: 'Compare instances; let the server’s idle timeout be longer than the balancer’s; finish requests before a shutdown.',
    right: `node: server.keepAliveTimeout = 65_000 (balancer: 60 s) · remove an instance from the balancer before it stops`,
    breaks: '7.2-no-unprovoked-5xx 4.1-success 4.2-success',
    when: /not each time/m,
  },
  {
    name: 'the rate limit does not say how long to wait',
    what: 'A refusal for rate is not 429 rate_limited, or its Retry-After is missing, malformed, or not the time after which a request is served.',
    why: 'Gateways answer 503 or a page of their own, or print milliseconds, dates of another format, or the epoch of the reset.',
    fix: 'Answer 429 with whole seconds, rounded up to when the limit really opens again.',
    right: `429 · Retry-After: 3 · {"code": "rate_limited"}   -- Math.ceil((resetAtMs - Date.now()) / 1000)`,
    breaks: '7.2-retry-after 7.2-rate_limited 7.2-retry-after-honest',
  },
];
