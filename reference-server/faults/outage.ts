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
} from '../run/alter.ts';
import { TENANTS } from '../run/provisioning.ts';
import { hasExpired, tokenOf } from './bearer.ts';
import { REFUSALS, TOKEN_CLAIMS, theme, type Fault } from './fault.ts';
import { nextPath } from './next.ts';

const { fails } = theme([...REFUSALS, ...TOKEN_CLAIMS, '4.2-r5-exactly-once', '4.2-r7-link', '4.2-window']);

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

type Odd = (request: ServiceRequest, next: Handler) => Answer;
type Matches = (request: ServiceRequest) => boolean;

/** Answers 503 while the failure lasts, except that requests that match `isOdd` get `odd` in the given stages. */
const failing = (stages: readonly Stage[], isOdd: Matches, odd: Odd) =>
  outage((request, stage, next) => {
    if (stages.includes(stage) && isOdd(request)) return odd(request, next);
    return stage === 'on' && isScreenings(request) ? unavailable() : next(request);
  });
const during = (isOdd: Matches, odd: Odd) => failing(['on'], isOdd, odd);
const afterwards = (isOdd: Matches, odd: Odd = unavailable) => failing(['after'], isOdd, odd);

const unavailable = (): ServiceAnswer => refusal('503 service_unavailable');
const isFollowed: Matches = (request) => isScreenings(request) && queryOf(request).has('from_id');
const isOf =
  (tenant: keyof typeof TENANTS): Matches =>
  (request) =>
    isScreenings(request) && request.path.includes(TENANTS[tenant]);
const isAnonymous: Matches = (request) =>
  isScreenings(request) && request.headers['authorization'] === undefined;
const isOfSecondClient: Matches = (request) =>
  isTokenRequest(request) && /client_id=second/.test(String(request.body));
const hasNoPageSize: Matches = (request) => isScreenings(request) && !queryOf(request).has('pageSize');

/** Replaces answers of one status; pages become 503. */
const replacing =
  (status: number, odd: () => ServiceAnswer, where: Matches = () => true): Odd =>
  async (request, next) => {
    const answer = await next(request);
    if (answer.status === status && !isAnonymous(request) && where(request)) return odd();
    return answer.status === 200 && isScreenings(request) ? unavailable() : answer;
  };

/** Pages after the second one of a traversal get `odd` in one stage. */
const failingDeep = (oddStage: Stage, odd: () => ServiceAnswer) => {
  const deep = new Set<string>();
  return outage(async (request, stage, next) => {
    if (stage === oddStage && deep.has(request.path)) return odd();
    if (stage === 'on' && isScreenings(request)) return unavailable();
    const answer = await next(request);
    const path = nextPath(answer);
    if (isFollowed(request) && path !== undefined) deep.add(path);
    return answer;
  });
};

export const outages: readonly Fault[] = [
  ...fails({ '7.2-server-error': /5xx with internal_error or service_unavailable/ })({
    'during an outage errors have an undocumented code': during(isScreenings, () =>
      refusal('500 database_down'),
    ),
  }),
  ...fails({ '7.2-server-error': /a page: 5xx or the earlier page.*0 items/ })({
    'during an outage pages are empty': during(isScreenings, emptyPage),
  }),
  ...fails({ '7.2-server-error': /of the second tenant.*no page that ends the traversal.*0 items/ })({
    'during an outage pages of the second tenant are empty': during(isOf('secondTenant'), emptyPage),
  }),
  ...fails({ '7.2-server-error': /a next.*no page that ends the traversal.*0 items/ })({
    'during an outage a next returns an empty page': during(isFollowed, emptyPage),
  }),
  ...fails({ '7.2-server-error': /without pageSize.*no page that lacks item \d+.*a next/ })({
    // One of several shards; single items may come from another one.
    'during an outage pages of more than ten lack some items': outage(async (request, stage, next) => {
      const answer = await next(request);
      return stage === 'on' && isScreenings(request) && answer.status === 200
        ? jsonBody((page) => ({
            ...page,
            items: (page['items'] as object[]).filter((_, i) => i < 10 || i % 3),
          }))(answer)
        : answer;
    }),
  }),
  ...fails({ '7.2-server-error': /in the middle of a traversal: 5xx with/ })({
    'during an outage deep pages have an undocumented code': failingDeep('on', () =>
      refusal('500 database_down'),
    ),
  }),
  ...fails({ '4.1-success': /200.*401 .*invalid_client/ })({
    'during an outage right credentials are invalid_client': during(isTokenRequest, invalidClient),
    'during an outage the second client is invalid_client': during(isOfSecondClient, invalidClient),
  }),
  ...fails({ '5-missing': /401.*200/ })({
    'during an outage requests need no token': during(isAnonymous, emptyPage),
    'after an outage requests need no token': afterwards(isAnonymous, emptyPage),
  }),
  ...fails({ '5-tampered': /altered token: 401.*200/ })({
    'during an outage tokens are not verified': during(isScreenings, replacing(401, emptyPage)),
  }),
  ...fails({ '5-forbidden-unknown': /unknown tenant: 403.*200/ })({
    'during an outage tenants are not compared': during(isScreenings, replacing(403, emptyPage)),
  }),
  ...fails({ '5-expired': /expired token: 401.*200/ })({
    'during an outage tokens do not expire': during(isScreenings, replacing(401, emptyPage, hasExpired)),
  }),
  ...fails({ '4.2-r2-inverted': /to earlier than from: 400.*200/ })({
    'during an outage to earlier than from is an empty page': during(isScreenings, replacing(400, emptyPage)),
  }),
  ...fails({ '7.1-invalid_client-secret': /wrong client_secret: 401.*200/ })({
    'during an outage client_secrets are not compared': during(
      isTokenRequest,
      replacing(401, () => jsonAnswer(200, { access_token: 'e30.e30.e30' })),
    ),
  }),
  ...fails({ '7.2-server-error': /a next of before.*200 within.*end of the fault.*400/ })({
    'after an outage an earlier next is refused': afterwards(isFollowed, () =>
      refusal('400 invalid_request'),
    ),
  }),
  ...fails({ '7.2-server-error': /a token request.*200 with a token within.*end of the fault.*503/ })({
    'after an outage the token endpoint still fails': failing(['on', 'after'], isTokenRequest, unavailable),
  }),
  ...fails({ '7.2-server-error': /of the second tenant.*200 within.*end of the fault.*503/ })({
    'after an outage the second tenant still fails': afterwards(isOf('secondTenant')),
  }),
  ...fails({ '7.2-server-error': /second tenant's token request: 200.*end of the fault.*503/ })({
    'after an outage the second client gets no token': afterwards(isOfSecondClient),
  }),
  ...fails({ '7.2-server-error': /a page: 200 within.*end of the fault.*503/ })({
    'after an outage first pages of one item still fail': afterwards(
      (request) =>
        isOf('primary')(request) && queryOf(request).get('pageSize') === '1' && !isFollowed(request),
    ),
  }),
  ...fails({ '7.2-server-error': /in the middle of a traversal: 200 within.*503/ })({
    'after an outage deep pages still fail': failingDeep('after', unavailable),
  }),
  ...fails({ '7.2-server-error': /no page that ends the traversal.*0 items/ })({
    'after an outage pages are empty': afterwards(
      (request) => isScreenings(request) && !isFollowed(request),
      replacing(200, emptyPage),
    ),
  }),
  ...fails({ '7.2-server-error': /with a new token: 200 within.*end of the fault.*401/ })({
    'after an outage new tokens are refused': afterwards(hasNoPageSize, () => refusal('401 unauthenticated')),
  }),
  ...fails({ '7.2-server-error': /with a token of the outage: 200 within.*401/ })({
    'after an outage the tokens that were issued in it are refused': withTokensOfOutage(),
  }),
  ...fails({ '7.2-not_found': /404.*200/ })({
    'after an outage a tenant that is not onboarded is served': afterwards(isOf('notOnboarded'), emptyPage),
  }),
];

/** Refuses tokens once the failure in which they were issued is over. */
function withTokensOfOutage(): ReturnType<typeof outage> {
  const odd = new Set<string>();
  return outage(async (request, stage, next) => {
    if (isScreenings(request) && stage === 'on') return unavailable();
    if (isScreenings(request) && odd.has(tokenOf(request))) return refusal('401 unauthenticated');
    const answer = await next(request);
    const isIssued = stage === 'on' && isTokenRequest(request) && answer.status === 200;
    if (isIssued) odd.add((JSON.parse(String(answer.body)) as { access_token: string }).access_token);
    return answer;
  });
}
