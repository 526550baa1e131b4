/** Mistakes in the environment of an implementation or in its target file. */
import type { Mistakes } from './mistake.ts';

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
