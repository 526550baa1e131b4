/** Section 7.2: faults during and after a failure of the server. */
import { jsonAnswer, type Handler, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import {
  emptyPage,
  invalidClient,
  isScreenings,
  isTokenRequest,
  jsonBody,
  middleware,
  queryOf,
  refusal,
  withHeader,
} from '../run/alter.ts';
import { TENANTS } from '../run/provisioning.ts';
import { TOKEN_CLAIMS, type Fault } from './fault.ts';
import { nextPath } from './next.ts';

type Answer = ServiceAnswer | Promise<ServiceAnswer>;
type Stage = 'before' | 'on' | 'after';

/** The fault commands of the target file change the stage. */
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
      fault: { start: async () => void (stage = 'on'), stop: async () => void (stage = 'after') },
    }),
  };
}

const unavailable = (): ServiceAnswer => refusal('503 service_unavailable');
const isFollowed = (request: ServiceRequest): boolean =>
  isScreenings(request) && queryOf(request).has('from_id');
const isOf =
  (tenant: keyof typeof TENANTS) =>
  (request: ServiceRequest): boolean =>
    isScreenings(request) && request.path.includes(TENANTS[tenant]);
const isAnonymous = (request: ServiceRequest): boolean =>
  isScreenings(request) && request.headers['authorization'] === undefined;

/** Answers 503 while the failure lasts, except that requests that match `isOdd` get `odd` in the given stages. */
const failing = (
  name: string,
  trips: Fault['trips'],
  stages: readonly Stage[],
  isOdd: (request: ServiceRequest) => boolean,
  odd: (request: ServiceRequest, next: Handler) => Answer,
  mayTrip: Fault['mayTrip'] = [],
): Fault => ({
  name,
  trips,
  mayTrip,
  ...outage((request, stage, next) => {
    if (stages.includes(stage) && isOdd(request)) return odd(request, next);
    return stage === 'on' && isScreenings(request) ? unavailable() : next(request);
  }),
});

/** Replaces answers of one status, except to requests that match `isLeft`; pages become 503. */
const replacing =
  (status: number, isLeft: (request: ServiceRequest) => boolean, odd: () => ServiceAnswer) =>
  async (request: ServiceRequest, next: Handler): Promise<ServiceAnswer> => {
    const answer = await next(request);
    if (answer.status === status && !isLeft(request)) return odd();
    return answer.status === 200 && isScreenings(request) ? unavailable() : answer;
  };

/** Fails, except that pages after the second one of a traversal get `odd` in one stage. */
const failingDeep = (name: string, words: RegExp, oddStage: Stage, odd: () => ServiceAnswer): Fault => {
  const deep = new Set<string>();
  return {
    name,
    trips: { '7.2-server-error': words },
    mayTrip: ['7.2-body'],
    ...outage(async (request, stage, next) => {
      if (stage === oddStage && deep.has(request.path)) return odd();
      if (stage === 'on' && isScreenings(request)) return unavailable();
      const answer = await next(request);
      const path = nextPath(answer);
      if (isFollowed(request) && path !== undefined) deep.add(path);
      return answer;
    }),
  };
};

const FAILS = /5xx with internal_error or service_unavailable/;
const WALK = ['4.2-r5-exactly-once', '4.2-from_id', '4.2-r7-link', '4.2-window'] as const;

export const outages: readonly Fault[] = [
  failing(
    'a failing server answers without a documented code',
    { '7.2-server-error': FAILS },
    ['on'],
    isScreenings,
    () => refusal('500 database_down'),
    ['7.2-body'],
  ),
  failing(
    'a failing server answers an empty page',
    { '7.2-server-error': new RegExp(`${FAILS.source}.*200`) },
    ['on'],
    isScreenings,
    emptyPage,
  ),
  failing(
    'a failing server ends a traversal with an empty page',
    { '7.2-server-error': /a next.*no page that ends the traversal.*0 items/ },
    ['on'],
    isFollowed,
    emptyPage,
    WALK,
  ),
  failing(
    'a failing server serves the page of a next without its own next',
    { '7.2-server-error': /a next.*no page that ends the traversal.*no next/ },
    ['on'],
    isFollowed,
    async (request, next) =>
      withHeader(jsonBody((page) => ({ ...page, links: {} }))(await next(request)), 'link', undefined),
    WALK,
  ),
  failing(
    'a failing server answers right credentials with invalid_client',
    { '4.1-success': /200.*401 .*invalid_client/ },
    ['on'],
    isTokenRequest,
    invalidClient,
  ),
  failing(
    'a failing server serves requests without a token',
    { '5-missing': /401.*200/ },
    ['on'],
    isAnonymous,
    emptyPage,
    ['7.2-server-error'],
  ),
  failing(
    'a failing server believes tokens that it cannot verify',
    { '5-tampered': /altered token: 401.*200/ },
    ['on'],
    isScreenings,
    replacing(401, isAnonymous, emptyPage),
    ['7.2-server-error'],
  ),
  failing(
    'a failing server does not compare tenants',
    { '5-forbidden-unknown': /unknown tenant: 403.*200/ },
    ['on'],
    isScreenings,
    replacing(403, () => false, emptyPage),
    ['7.2-server-error', '5-forbidden'],
  ),
  failing(
    'a failing server takes any client_secret for right',
    { '7.1-invalid_client-secret': /wrong client_secret: 401.*200/ },
    ['on'],
    isTokenRequest,
    replacing(
      401,
      () => false,
      () => jsonAnswer(200, { access_token: 'e30.e30.e30' }),
    ),
    TOKEN_CLAIMS,
  ),
  failing(
    'after an outage a next of before is refused',
    { '7.2-server-error': /a next of before.*200 within.*end of the fault.*400/ },
    ['after'],
    isFollowed,
    () => refusal('400 invalid_request'),
  ),
  failing(
    'the token endpoint does not recover from an outage',
    { '7.2-server-error': /a token request.*200 with a token within.*end of the fault.*503/ },
    ['on', 'after'],
    isTokenRequest,
    unavailable,
  ),
  failing(
    'after an outage the second tenant is refused',
    { '7.2-server-error': /of the second tenant.*200 within.*end of the fault.*503/ },
    ['after'],
    isOf('secondTenant'),
    unavailable,
  ),
  failing(
    'after an outage the second client gets no token',
    { '7.2-server-error': /second tenant's token request: 200.*end of the fault.*503/ },
    ['after'],
    (request) => isTokenRequest(request) && /client_id=second/.test(String(request.body)),
    unavailable,
  ),
  failing(
    'the failure of one page size is kept after an outage',
    { '7.2-server-error': /without pageSize.*200 within.*end of the fault.*503/ },
    ['after'],
    (request) => isScreenings(request) && !queryOf(request).has('pageSize'),
    unavailable,
  ),
  failing(
    'the failure of first pages of one item is kept after an outage',
    { '7.2-server-error': /a page: 200 within.*end of the fault.*503/ },
    ['after'],
    (request) => isOf('primary')(request) && queryOf(request).get('pageSize') === '1' && !isFollowed(request),
    unavailable,
  ),
  failingDeep(
    'a failing server answers deep pages without a documented code',
    /in the middle of a traversal: 5xx with/,
    'on',
    () => refusal('500 database_down'),
  ),
  failingDeep(
    'the failure of deep pages is kept after an outage',
    /in the middle of a traversal: 200 within.*503/,
    'after',
    unavailable,
  ),
  failing(
    'after an outage pages are empty',
    { '7.2-server-error': /no page that ends the traversal.*0 items/ },
    ['after'],
    (request) => isScreenings(request) && !isFollowed(request),
    async (request, next) => {
      const answer = await next(request);
      return answer.status === 200 ? emptyPage() : answer;
    },
    WALK,
  ),
  failing(
    'after an outage new tokens are refused',
    { '7.2-server-error': /with a new token: 200 within.*end of the fault.*401/ },
    ['after'],
    (request) => isScreenings(request) && !queryOf(request).has('pageSize'),
    () => refusal('401 unauthenticated'),
    ['5-valid-token'],
  ),
  failing(
    'after an outage a tenant that is not onboarded is served',
    { '7.2-not_found': /404.*200/ },
    ['after'],
    isOf('notOnboarded'),
    emptyPage,
  ),
  failing(
    'after an outage requests without a token are served',
    { '5-missing': /401.*200/ },
    ['after'],
    isAnonymous,
    emptyPage,
    ['7.2-server-error'],
  ),
];
