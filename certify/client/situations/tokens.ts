/** Tokens: sections 2.2 and 5. */
import { decodeJwt } from 'jose';
import { OFFERED_SCOPE } from '../../../engine/client/client.ts';
import {
  answering,
  both,
  intercepting,
  invalidClient,
  isTokenRequest,
  minting,
  refusal,
  tokenMembers,
  withoutBody,
} from '../../../reference-server/run/alter.ts';
import { opaqueTokens } from '../../../reference-server/faults/tokens.ts';
import type { ServerOptions } from '../../../reference-server/run/start.ts';
import { retryFindings, reuseFindings } from '../judge-requests.ts';
import { laterMints, mints, pageRequests, normalized, type Recorded } from '../record.ts';
import { answered, none, situationsOf, unless, type Play } from '../situation.ts';
import { several } from '../../render/results.ts';
import { scopesOf } from '../stage.ts';
import { atPage, pageStep, slowPages, usual } from './blocks.ts';

const LOOK_AT_401 = [
  'what happens on a 401: the token is discarded, a new one is minted, and the same URL is requested once more',
  'the token of the retry: the new one, and not the header that was made before',
];

const hasMinted = ({ requests }: Play): true | string =>
  mints(requests).length > 0 || 'the client asked for no token';

const LIFETIME_S = 62;
const MARGIN_S = 60;
/** With the time between checking the clock and the arrival of a request, and rounding to whole seconds. */
const OLD_AFTER_S = LIFETIME_S - MARGIN_S + 1.5;
const ageS = (issued: Recorded | undefined, { atMs }: Pick<Recorded, 'atMs'>): number =>
  (atMs - (issued?.endMs ?? Infinity)) / 1000;

export const tokenSituations = situationsOf('5.6', {
  'refresh-margin': {
    level: 'SHOULD',
    title: `a token is used until ${MARGIN_S} seconds before exp, then a new one is minted (here it lives for ${LIFETIME_S})`,
    lookAt: [
      'the moment of renewal: expires_in minus 60 seconds after the token was received',
      'whether the token’s age is checked before each request, or only at the start of the walk',
    ],
    stage: (clock) => usual({ tokenLifetimeSeconds: LIFETIME_S, ...slowPages(600, clock) }, 8),
    met: ({ requests }) =>
      pageRequests(requests).some((request) => ageS(mints(requests)[0], request) > OLD_AFTER_S) ||
      'the walk was over before a token came near its exp',
    judge: ({ requests }) => {
      const issued = mints(requests).filter(({ status }) => status === 200);
      // The client chose the token after the last answer; the request may come late from a busy machine.
      const chosenMs = (request: Recorded): number =>
        Math.max(...requests.flatMap(({ endMs = Infinity }) => (endMs <= request.atMs ? endMs : [])));
      const age = (request: Recorded): number =>
        ageS(issued[(request.token ?? 0) - 1], { atMs: chosenMs(request) });
      const late = pageRequests(requests).filter((request) => age(request) > OLD_AFTER_S);
      const left = LIFETIME_S - Math.max(...late.map(age));
      const expected = `a new token from ${MARGIN_S} s before exp on`;
      const old = `a token that was to be renewed (${left.toFixed(0)} s before its exp)`;
      const received = `${several(late.length, 'request')} with ${old}`;
      return none(late, expected, received);
    },
  },
  'token-expires-in-the-walk': {
    level: 'SHOULD',
    title:
      'a token that expires in the middle of a walk is replaced by one that is reused, and the walk continues',
    lookAt: [...LOOK_AT_401, 'where the new token is kept, and its lifetime with it'],
    stage: (clock) => usual(both(slowPages(400, clock), firstTokenLives(2)), 12),
    met: ({ requests }) =>
      mints(requests).length > 1 ||
      pageRequests(requests).some(({ status }) => status === 401) ||
      'the walk was over before the token expired',
    judge: reuseFindings(2),
  },
  '401-once': {
    level: 'SHOULD',
    title: 'on each 401 a new token is minted, the request is retried with it, and the walk continues',
    lookAt: LOOK_AT_401,
    stage: () => usual(revokedAtPages(2, 4)),
    met: answered(401),
    judge: ({ requests }) => {
      const refused = pageRequests(requests).filter(({ status }) => status === 401);
      // A concurrent walk may still use the old token.
      const isRetry = (again: Recorded, first: Recorded): boolean =>
        normalized(again.request.path) === normalized(first.request.path) && again.atMs > first.endMs!;
      const retried = refused.flatMap((first) => {
        const again = refused.find((one) => isRetry(one, first) && one.token === first.token);
        return again ? [first, again] : [];
      });
      return none(retried, 'a retry with a new token', 'one with the token that was refused');
    },
  },
  '401-for-ever': {
    level: 'SHOULD',
    title:
      'on a 401 the request is retried exactly once: if the new token is rejected as well, the client gives up',
    lookAt: ['the retry after a 401: one per request, and then an error'],
    stage: () => usual(answering('401 unauthenticated', () => true)),
    met: answered(401),
    impossible: true,
    judge: ({ requests }) =>
      retryFindings(requests, 401, 1, `, with ${several(mints(requests).length, 'token request')}`),
  },
  'scope-subset': {
    section: '5.7',
    optional: true,
    title: 'fewer scopes granted than requested are no error',
    lookAt: ['a comparison of the granted scope with the requested one: screenings.read is enough'],
    stage: () => usual(tokenMembers(() => ({ scope: OFFERED_SCOPE }))),
    met: ({ requests }) =>
      mints(requests).some(({ request }) => scopesOf(request).length > 1) ||
      'the client asks for one scope only, of which none can be left out',
  },
  'opaque-token': {
    section: '2.2',
    level: 'SHOULD',
    title: 'the token is sent unchanged and is not decoded (here it is not a JWT)',
    lookAt: [
      'where the lifetime is taken from: expires_in of the token response',
      'code that decodes the access token: that is for diagnostics alone',
    ],
    stage: () => usual(opaqueTokens),
  },
  'token-503-for-ever': {
    section: '5.6',
    level: 'SHOULD',
    title:
      'if the token endpoint keeps answering 503, the client gives up in bounded time, and exits with an error',
    lookAt: ['the retry around the token request: bounded, with growing waits'],
    stage: () => usual(intercepting(() => refusal('503 service_unavailable'), isTokenRequest)),
    met: hasMinted,
    impossible: true,
  },
  'redirect-to-another-host': {
    section: '5.1',
    level: 'SHOULD',
    title: 'the token is not sent to another host to which a page is redirected (RFC 6750, 5.3)',
    lookAt: ['redirects: not followed, or without the Authorization header'],
    stage: () =>
      usual(
        atPage(2, (_place, { headers }) => withoutBody(307, [['location', elsewhere(headers['host']!)]])),
      ),
    met: answered(307),
    impossible: true,
    judge: ({ requests }) => {
      const sent = requests.filter(({ channel, token }) => channel === 'other' && token !== undefined);
      return none(sent, 'no token at another host', 'a token there');
    },
  },
  'credentials-refused': {
    section: '7.1',
    level: 'SHOULD',
    title: 'rejected credentials (401 invalid_client) are final: the client gives up and exits with an error',
    lookAt: ['the retry around the token request: only for failures of the server'],
    stage: () => usual(intercepting(invalidClient, isTokenRequest)),
    met: hasMinted,
    impossible: true,
    judge: ({ requests }) => {
      const minted = mints(requests);
      const received = several(minted.length, 'token request');
      const isFinal = laterMints(requests).length <= 1;
      return unless(isFinal, 'no retry of refused credentials', received, minted.slice(0, 5));
    },
  },
});

/** The same server by another name of its host, so that a client must not send the token there. */
const elsewhere = (host: string): string => `http://${host.replace('127.0.0.1', 'localhost')}/elsewhere`;

/** Gives the first token this lifetime in seconds, and all later ones the usual one. */
const firstTokenLives = (seconds: number): ServerOptions =>
  both(
    minting(() => {
      let isFirst = true;
      return (claims, mint) => {
        const exp = isFirst ? claims.iat + seconds : claims.exp;
        isFirst = false;
        return mint({ ...claims, exp });
      };
    }),
    tokenMembers(({ access_token }) => {
      const { iat, exp } = decodeJwt(String(access_token));
      return { expires_in: exp! - iat! };
    }),
  );

/** Rejects, from each of these pages on, the token that was used there; not while a rejected request is still retried. */
const revokedAtPages = (...wanted: readonly number[]): ServerOptions =>
  pageStep(() => {
    const left = [...wanted];
    const revoked = new Set<string | undefined>();
    const refused = new Set<number>();
    return ({ page }, request, next) => {
      const bearer = request.headers['authorization'];
      if (page >= (left[0] ?? Infinity) && refused.size === 0) {
        left.shift();
        revoked.add(bearer);
      }
      if (revoked.has(bearer)) {
        refused.add(page);
        return refusal('401 unauthenticated');
      }
      refused.delete(page);
      return next(request);
    };
  });
