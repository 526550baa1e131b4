/** Section 1: servers that accept writes. */
import { parseJson } from '../../engine/client/json.ts';
import { instant } from '../../engine/data/instant.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { StoredScreening } from '../parts.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import {
  both,
  eachText,
  isScreenings,
  middleware,
  perServer,
  queryOf,
  requests,
  withoutBody,
} from '../run/alter.ts';
import { theme, withoutWindow, type Fault } from './fault.ts';
import { formOf } from './forms.ts';
import { screening, withAddedTo } from './rows.ts';

const { fails, failsFull } = theme();

const isWriting = ({ method, path }: ServiceRequest, ...methods: string[]): boolean =>
  methods.includes(method) && /\/tenants\/[^/]+\/screenings(\/|\?|$)/.test(path);

type Held = Map<string, StoredScreening>;

/** The scratch tenant's screenings by id, which `change` may alter. Where it returns an answer, that is the server's. */
const writable = (
  method: string,
  change: (held: Held, body: unknown, request: ServiceRequest) => ServiceAnswer | false | void,
): ServerOptions =>
  perServer(() => {
    const held: Held = new Map([['1', ofScratch('1', '1970-05-05T05:05:05Z')]]);
    return both(
      middleware(() => (request, next) => {
        const isMatching = request.path.includes(TENANTS.scratch) && isWriting(request, method);
        const answer = isMatching && change(held, parseJson(String(request.body)), request);
        return answer || next(request);
      }),
      withAddedTo(TENANTS.scratch, () => [...held.values()]),
    );
  });

const store = (held: Held, ...all: readonly { id: number | string; testTime: string }[]): ServiceAnswer => {
  for (const { id, testTime } of all) held.set(String(id), ofScratch(String(id), testTime));
  return jsonAnswer(200, { done: true });
};

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

const isComplete = (value: unknown): value is Posted =>
  ['id', 'tenantId', 'testTime', 'result'].every((name) => Object.hasOwn(Object(value), name));

export const readOnly: readonly Fault[] = [
  ...failsFull({ '1-read-only': /no screening that was not there before/ })({
    'POST stores a screening': writable(
      'POST',
      (held, one) => one !== undefined && !Array.isArray(one) && store(held, one as Posted),
    ),
    'POST stores a screening that has all members': writable(
      'POST',
      (held, one) => isComplete(one) && store(held, one),
    ),
    'PUT of the collection stores screenings from an array': writable(
      'PUT',
      (held, all) => Array.isArray(all) && store(held, ...(all as Posted[])),
    ),
    'POST stores screenings from an array': writable(
      'POST',
      (held, all) => Array.isArray(all) && store(held, ...(all as Posted[])),
    ),
  }),
  ...failsFull({ '1-read-only': /as before the writing methods.*with other values/ })({
    'PUT replaces a screening if the id of its body is the one of its path': writable(
      'PUT',
      (held, one, request) => {
        const id = idOf(request) ?? '';
        return isComplete(one) && String(one.id) === id && held.has(id) && store(held, one);
      },
    ),
    'PATCH as application/merge-patch+json changes a screening': writable('PATCH', (held, part, request) => {
      const id = idOf(request) ?? '';
      const { testTime } = (part ?? {}) as Partial<Posted>;
      const isMerge = request.headers['content-type'] === 'application/merge-patch+json';
      return isMerge && !!testTime && held.has(id) && store(held, { id, testTime });
    }),
  }),
  ...failsFull({ '1-read-only': /as before the writing methods.*without it/ })({
    'DELETE deletes a screening': writable(
      'DELETE',
      (held, _, request) => held.delete(idOf(request) ?? '') && withoutBody(204),
    ),
    'X-HTTP-Method-Override makes a POST a DELETE': writable('POST', (held, _, request) => {
      if (request.headers['x-http-method-override'] === 'DELETE') held.delete(idOf(request) ?? '');
    }),
    '_method in a form makes a POST a DELETE': writable('POST', (held, _, request) => {
      if (formOf(request).get('_method')?.[0] === 'DELETE') held.delete(idOf(request) ?? '');
    }),
    'DELETE of the collection deletes all screenings, with a 404': writable('DELETE', (held, _, { path }) => {
      if (path.endsWith('/screenings')) held.clear();
    }),
    'DELETE of a window deletes its screenings': writable('DELETE', (held, _, request) => {
      if (!queryOf(request).has('from')) return false;
      held.clear();
      return withoutBody(204);
    }),
  }),
  ...fails({ '1-read-only': /with other values/ })({
    'PATCH of any id changes every screening of the tenant': patchingAll((item, times) =>
      item.replace(/\}$/, `,"revision":${times}}`),
    ),
  }),
  ...failsFull({ '1-read-only': /with other values/ })({
    'PATCH of any id sets a member of every screening': {
      server: patchingAll((item) => item.replace(/"result":[^,}]*/, '"result":"void"')),
      target: withoutWindow,
    },
  }),
  ...fails({ '1-read-only-refused': /a 4xx or 501.*204/ })({
    'PUT and PATCH are 204 without effect': middleware(
      () => (request, next) => (isWriting(request, 'PUT', 'PATCH') ? withoutBody(204) : next(request)),
    ),
  }),
  ...failsFull({ '1-read-only-refused': /a 4xx or 501.*200/ })({
    'POST is served like GET': requests((request) =>
      request.method === 'POST' && isScreenings(request) ? { ...request, method: 'GET' } : request,
    ),
  }),
];

function patchingAll(change: (item: string, times: number) => string): ServerOptions {
  return perServer(() => {
    let times = 0;
    const counting = middleware(() => (request, next) => {
      if (isWriting(request, 'PATCH')) times += 1;
      return next(request);
    });
    return both(
      eachText((item) => (times > 0 ? change(item, times) : item)),
      counting,
    );
  });
}
