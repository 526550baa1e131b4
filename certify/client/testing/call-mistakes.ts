/** Clients that treat secrets, tokens, limits, failures and events wrongly. */
import type { Mistake } from './mistake.ts';

const raw = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join('&');

const RETRIED = { '500-once': /expected the window to be collected whole, got exit status 1/ };
const THRICE = ['503-three-times', '500-three-times', '503-for-ever'];

export const CALL_MISTAKES: Readonly<Record<string, Mistake>> = {
  'does not form-encode its secret': {
    habits: { form: raw },
    shows: { 'secret-form-encoded': /got exit status 1: gave up: no token: invalid_/ },
  },
  'sends its secret in the query too': {
    habits: { secretInQuery: true },
    shows: { 'secret-kept': /no secret in a URL, got the client_secret in one/ },
  },
  'sends its secret to the REST API too': {
    habits: { secretToApi: true },
    shows: { 'secret-kept': /the secret to stay with the token endpoint/ },
  },
  'logs its secret': {
    habits: { says: ({ clientId, clientSecret }) => `POST /oauth/token ${clientId} ${clientSecret}` },
    shows: { 'secret-kept': /no secret on standard error, got the client_secret there/ },
  },
  'logs its credentials as Basic': {
    habits: {
      says: ({ clientId, clientSecret }) =>
        `Authorization: Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
    },
    shows: { 'secret-kept': /no secret on standard error/ },
  },
  'prints its secret among the screenings': {
    habits: { prints: ({ clientSecret }) => JSON.stringify({ secret: clientSecret }) },
    shows: { 'secret-kept': /no secret on standard output/ },
  },
  'logs its token': {
    habits: { says: (_given, token) => `got ${token}` },
    status: 'warn',
    shows: { 'secret-kept': /no token on standard error, got an access token there/ },
  },
  'decodes its token and stumbles over one that is no JWT': {
    habits: { decodesToken: true },
    status: 'warn',
    shows: { 'opaque-token': /collected whole, got exit status 1/ },
  },
  'wants all the scopes that it asked for': {
    habits: { asks: { scope: 'screenings.read screenings.export', strict: true } },
    shows: { 'scope-subset': /gave up: not all scopes/ },
  },
  'gives up at a 401': {
    habits: { retries401: 0 },
    status: 'warn',
    shows: { '401-once': /collected whole, got exit status 1: gave up: 401 for a page/ },
    also: ['token-expires-in-the-walk'],
  },
  'retries a 401 with the token that was refused': {
    habits: { remintsOn401: false },
    status: 'warn',
    shows: { '401-once': /a retry with a new token, got one with the token that was refused/ },
    also: ['token-expires-in-the-walk'],
  },
  'retries a 401 five times': {
    habits: { retries401: 5 },
    status: 'warn',
    shows: {
      '401-for-ever': /one retry of a request that is answered 401, got 5 retries, with 6 token requests/,
    },
  },
  'retries a 401 for ever': {
    habits: { retries401: Infinity },
    shows: {
      'comes-to-an-end':
        /an end after a few retries, got \d+ requests for pages, and no end \(in 401-for-ever\)/,
    },
    also: ['401-for-ever'],
  },
  'retries refused credentials': {
    habits: { retriesInvalidClient: 4 },
    status: 'warn',
    shows: { 'credentials-refused': /no retry of refused credentials, got 5 token requests/ },
  },
  'ignores Retry-After': {
    habits: { waitsFor429: 'backoff', retries429: 20 },
    shows: { '429-with-seconds': /no request for 2\.00 s after the 429, .*got the next one after 0\.\d\d s/ },
    also: ['429-with-a-date', '429-twice'],
  },
  'reads Retry-After as seconds alone': {
    habits: { waitsFor429: 'seconds only' },
    status: 'warn',
    shows: { '429-with-a-date': /no request for \d\.\d\d s after the 429/ },
  },
  'gives up at a 429': {
    habits: { retries429: 0 },
    status: 'warn',
    shows: { '429-twice': /collected whole, got exit status 1: gave up: 429 for a page/ },
    also: ['429-with-seconds', '429-with-a-date'],
  },
  'does not retry a 5xx': {
    habits: { retries5xx: 0 },
    shows: { ...RETRIED, '503-three-times': /a retry, got exit status 1 after the first failure/ },
    also: THRICE,
  },
  'retries a 5xx immediately and for ever': {
    habits: { retries5xx: Infinity, backoffMs: () => 0 },
    shows: { '503-for-ever': /an end after a few retries, got \d+ requests for pages, and no end/ },
    also: THRICE,
  },
  ...Object.fromEntries(
    [400, 403, 404].map((status): [string, Mistake] => [
      `retries a ${status}`,
      {
        habits: { retriedStatuses: [status] },
        shows: {
          [`${status}-not-retried`]: new RegExp(
            `no retry of a request that is answered ${status}, got 3 retries`,
          ),
        },
      },
    ]),
  ),
  'exits with 0 whatever happened': {
    habits: { exitOf: () => 0 },
    shows: {
      '403-not-retried':
        /an exit status other than 0: the window could not be had, got exit status 0 with 0 screen/,
      'nothing-partial-as-whole': /exit status 0 with 0 screenings \(in 401-for-ever\)/,
    },
    also: [
      '400-not-retried',
      '404-not-retried',
      '503-for-ever',
      'credentials-refused',
      '401-for-ever',
      'tls-another-name',
    ],
  },
  'takes what has come of an answer that breaks off': {
    habits: { takesPartial: true },
    shows: { 'connection-dropped': /expected all 46 screenings of the window, got \d+, and exit status 0/ },
  },
  'waits no longer than two seconds for an answer': {
    habits: { timeoutMs: 2000, retriesDropped: 0 },
    alone: true,
    status: 'warn',
    shows: { 'slow-answer': /collected whole, got exit status 1: gave up: .*timeout/ },
  },
  'collects events beside pages without a look at what it has': {
    habits: { readsEvents: 'as they come' },
    shows: { 'events-beside-rest': /each screening once .*, got screening \d+ \d times/ },
  },
  'deduplicates events by their envelope': {
    habits: { readsEvents: 'by event' },
    shows: { 'events-beside-rest': /each screening once .*, got screening \d+ 2 times/ },
  },
};
