/** Section 7.2: what is wrong while the server fails, and after it. */
import { isScreenings, isTokenRequest, middleware, oauthError, queryOf, withHeader } from '../run/alter.ts';
import {
  errorAnswer,
  jsonAnswer,
  type Handler,
  type ServiceAnswer,
  type ServiceRequest,
} from '../http/http.ts';
import type { Fault } from './fault.ts';

type Answer = ServiceAnswer | Promise<ServiceAnswer>;
type Stage = 'before' | 'on' | 'after';

/** The fault commands change the stage. */
export function outage(
  answer: (request: ServiceRequest, stage: Stage, next: Handler) => Answer,
): Pick<Fault, 'server' | 'target' | 'bare'> {
  let stage: Stage = 'before';
  return {
    bare: false,
    server: middleware(() => {
      stage = 'before';
      return (request, next) => answer(request, stage, next);
    }),
    target: (target) => ({
      ...target,
      fault: {
        start: async () => void (stage = 'on'),
        stop: async () => void (stage = 'after'),
      },
    }),
  };
}

const unavailable = (): ServiceAnswer => errorAnswer(503, 'service_unavailable', 'the database is gone');
const isFollowed = (request: ServiceRequest): boolean => queryOf(request).has('from_id');
const isAnonymous = ({ headers }: ServiceRequest): boolean => headers['authorization'] === undefined;
const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

/** 503 while the fault is on, but for what `odd` answers, at any stage. */
const failing = (odd: (request: ServiceRequest, stage: Stage, next: Handler) => Answer | undefined) =>
  outage(
    (request, stage, next) =>
      odd(request, stage, next) ?? (stage === 'on' && isScreenings(request) ? unavailable() : next(request)),
  );

const FAILS = /5xx with internal_error or service_unavailable/;

export const outages: readonly Fault[] = [
  {
    name: 'a failing server answers without a documented code',
    trips: { '7.2-server-error': FAILS },
    mayTrip: ['7.2-body'],
    ...failing((request, stage) =>
      stage === 'on' && isScreenings(request) ? errorAnswer(500, 'database_down', 'oops') : undefined,
    ),
  },
  {
    name: 'a failing server answers an empty page',
    trips: { '7.2-server-error': new RegExp(`${FAILS.source}.*200`) },
    ...failing((request, stage) => (stage === 'on' && isScreenings(request) ? emptyPage() : undefined)),
  },
  {
    name: 'a failing server ends a traversal with an empty page',
    trips: { '7.2-server-error': /a next.*no page that ends the traversal.*0 items/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-from_id', '4.2-window'],
    ...failing((request, stage) =>
      stage === 'on' && isScreenings(request) && isFollowed(request) ? emptyPage() : undefined,
    ),
  },
  {
    name: 'a failing server serves the page of a next without its own next',
    trips: { '7.2-server-error': /a next.*no page that ends the traversal.*no next/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-r7-link', '4.2-window'],
    ...failing((request, stage, next) =>
      stage === 'on' && isScreenings(request) && isFollowed(request)
        ? Promise.resolve(next(request)).then((answer) =>
            withHeader(
              { ...answer, body: JSON.stringify({ ...JSON.parse(String(answer.body)), links: {} }) },
              'link',
              undefined,
            ),
          )
        : undefined,
    ),
  },
  {
    name: 'a failing server answers right credentials with invalid_client',
    trips: { '4.1-success': /200.*401 .*invalid_client/ },
    ...failing((request, stage) =>
      stage === 'on' && isTokenRequest(request)
        ? withHeader(oauthError(401, 'invalid_client'), 'www-authenticate', 'Basic realm="token endpoint"')
        : undefined,
    ),
  },
  {
    name: 'a failing server serves requests without a token',
    trips: { '5-missing': /401.*200/ },
    mayTrip: ['7.2-server-error'],
    ...failing((request, stage) =>
      stage === 'on' && isScreenings(request) && isAnonymous(request) ? emptyPage() : undefined,
    ),
  },
  {
    name: 'after an outage a next of before is refused',
    trips: { '7.2-server-error': /a next of before.*200 within.*end of the fault.*400/ },
    ...failing((request, stage) =>
      stage === 'after' && isScreenings(request) && isFollowed(request)
        ? errorAnswer(400, 'invalid_request', 'unknown cursor')
        : undefined,
    ),
  },
  {
    name: 'the token endpoint does not recover from an outage',
    trips: { '7.2-server-error': /a token request.*200 with a token within.*end of the fault.*503/ },
    ...failing((request, stage) =>
      stage !== 'before' && isTokenRequest(request) ? unavailable() : undefined,
    ),
  },
  {
    name: 'after an outage requests without a token are served',
    trips: { '5-missing': /401.*200/ },
    mayTrip: ['7.2-server-error'],
    ...failing((request, stage, next) =>
      stage === 'after' && isScreenings(request) && isAnonymous(request) ? emptyPage() : undefined,
    ),
  },
];
