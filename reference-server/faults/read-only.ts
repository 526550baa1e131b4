/** Section 1: servers that accept writes. */
import { instant } from '../../engine/data/instant.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { StoredScreening } from '../parts.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import { both, isScreenings, middleware, pages, requests } from '../run/alter.ts';
import { theme, type Fault } from './fault.ts';
import { screening, withAdded } from './rows.ts';

const { fails, failsFull } = theme();

const done = (): ServiceAnswer => jsonAnswer(200, { done: true });
const nothingToSay = (): ServiceAnswer => ({ status: 204, headers: [], body: '' });

const isWriting = ({ method, path }: ServiceRequest, ...methods: string[]): boolean =>
  methods.includes(method) && /\/tenants\/[^/]+\/screenings(\/|\?|$)/.test(path);

/** The scratch tenant's screenings by id, which `change` may alter before it answers. */
function writable(
  change: (held: Map<string, StoredScreening>, request: ServiceRequest) => ServiceAnswer | undefined,
): ServerOptions {
  let held = new Map<string, StoredScreening>();
  return {
    ...middleware(
      () => (request, next) =>
        (request.path.includes(TENANTS.scratch) &&
          isWriting(request, 'POST', 'PUT', 'PATCH', 'DELETE') &&
          change(held, request)) ||
        next(request),
    ),
    ...withAdded(() => {
      // Each server starts with its own collection.
      held = new Map([['1', ofScratch('1', '1970-05-05T05:05:05Z')]]);
      return ({ tenantId }) => (tenantId === TENANTS.scratch ? [...held.values()] : []);
    }),
  };
}

function ofScratch(id: string, testTime: string): StoredScreening {
  const bare = screening(TENANTS.scratch, BigInt(id), instant(testTime));
  return { ...bare, json: bare.json.replace(/\}$/, ',"result":"pass"}') };
}

const idOf = ({ path }: ServiceRequest): string | undefined => /\/screenings\/(\d+)$/.exec(path)?.[1];

interface Posted {
  readonly id: number;
  readonly tenantId: string;
  readonly testTime: string;
  readonly result: string;
}

const bodyOf = (body: ServiceRequest['body']): unknown =>
  String(body) === '' ? undefined : JSON.parse(String(body));

const isComplete = (value: unknown): value is Posted =>
  ['id', 'tenantId', 'testTime', 'result'].every((name) => Object.hasOwn(Object(value), name));

export const readOnly: readonly Fault[] = [
  ...failsFull({ '1-read-only': /no screening that was not there before/ })({
    'POST stores a screening': writable((held, { method, body }) => {
      const one = bodyOf(body);
      if (method !== 'POST' || Array.isArray(one)) return undefined;
      const { id, testTime } = one as Posted;
      held.set(String(id), ofScratch(String(id), testTime));
      return done();
    }),
    'POST stores a screening that has all members': writable((held, { method, body }) => {
      const one = bodyOf(body);
      if (method !== 'POST' || !isComplete(one)) return undefined;
      held.set(String(one.id), ofScratch(String(one.id), one.testTime));
      return done();
    }),
    'POST stores screenings from an array': writable((held, { method, body }) => {
      const all = bodyOf(body);
      if (method !== 'POST' || !Array.isArray(all)) return undefined;
      for (const { id, testTime } of all as Posted[]) held.set(String(id), ofScratch(String(id), testTime));
      return done();
    }),
  }),
  ...failsFull({ '1-read-only': /as before the writing methods.*with other values/ })({
    'PUT replaces a screening if the id of its body is the one of its path': writable((held, request) => {
      const id = idOf(request);
      const one = bodyOf(request.body);
      if (request.method !== 'PUT' || !isComplete(one) || String(one.id) !== id || !held.has(id))
        return undefined;
      held.set(id, ofScratch(id, one.testTime));
      return done();
    }),
    'PATCH as application/merge-patch+json changes a screening': writable((held, request) => {
      const id = idOf(request);
      const { testTime } = (bodyOf(request.body) ?? {}) as Partial<Posted>;
      const isMerge = request.headers['content-type'] === 'application/merge-patch+json';
      if (request.method !== 'PATCH' || !isMerge || id === undefined || !held.has(id) || !testTime)
        return undefined;
      held.set(id, ofScratch(id, testTime));
      return done();
    }),
  }),
  ...failsFull({ '1-read-only': /as before the writing methods.*without it/ })({
    'DELETE deletes a screening': writable((held, request) => {
      const id = idOf(request);
      if (request.method !== 'DELETE' || id === undefined) return undefined;
      held.delete(id);
      return nothingToSay();
    }),
    'DELETE of the collection deletes all screenings, with a 404': writable((held, { method, path }) => {
      if (method === 'DELETE' && path.endsWith('/screenings')) held.clear();
      return undefined;
    }),
  }),
  ...fails({ '1-read-only': /with other values/ })({
    'PATCH of any id changes every screening of the tenant': patchingAll(),
  }),
  ...fails({ '1-read-only-refused': /a 4xx or 501.*204/ })({
    'PUT and PATCH are 204 without effect': middleware(
      () => (request, next) => (isWriting(request, 'PUT', 'PATCH') ? nothingToSay() : next(request)),
    ),
  }),
  ...failsFull({ '1-read-only-refused': /a 4xx or 501.*200/ })({
    'POST is served like GET': requests((request) =>
      request.method === 'POST' && isScreenings(request) ? { ...request, method: 'GET' } : request,
    ),
  }),
];

function patchingAll(): ServerOptions {
  let times = 0;
  const counting = middleware(() => (request, next) => {
    if (isWriting(request, 'PATCH')) times += 1;
    return next(request);
  });
  const shown = pages((page) => {
    if (times > 0) page.items = page.items.map((item) => item.replace(/\}$/, `,"revision":${times}}`));
  });
  return both(shown, counting);
}
