/** Section 1: servers that accept writes. */
import { compareInstants, instant } from '../../engine/data/instant.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { StoredScreening } from '../parts.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import { both, isScreenings, middleware, pages, requests, storedPages } from '../run/alter.ts';
import { fullFaults, tripping, type Fault } from './fault.ts';

const done = (): ServiceAnswer => jsonAnswer(200, { done: true });
const nothingToSay = (): ServiceAnswer => ({ status: 204, headers: [], body: '' });

const WRITING = ['POST', 'PUT', 'PATCH', 'DELETE'];
const isWriting = ({ method, path }: ServiceRequest, ...methods: string[]): boolean =>
  methods.includes(method) && /\/tenants\/[^/]+\/screenings(\/|\?|$)/.test(path);

const screening = (id: string, testTime: string): StoredScreening => ({
  id: BigInt(id),
  testTime,
  json: `{"id":${id},"tenantId":"${TENANTS.scratch}","testTime":"${testTime}"}`,
});

/** The scratch tenant's screenings, which `change` may alter before it answers. */
function writable(
  change: (stored: Map<string, StoredScreening>, request: ServiceRequest) => ServiceAnswer | undefined,
): ServerOptions {
  let stored = new Map<string, StoredScreening>();
  return {
    ...middleware(
      () => (request, next) =>
        (request.path.includes(TENANTS.scratch) &&
          isWriting(request, ...WRITING) &&
          change(stored, request)) ||
        next(request),
    ),
    ...storedPages(() => {
      // Each server starts with its own collection.
      stored = new Map([['1', screening('1', '1970-05-05T05:05:05Z')]]);
      return async (query, ask) => {
        if (query.tenantId !== TENANTS.scratch) return ask(query);
        const items = [...stored.values()].filter(
          ({ testTime }) =>
            compareInstants(instant(testTime), query.from) >= 0 &&
            compareInstants(instant(testTime), query.to) < 0,
        );
        return { items, more: false };
      };
    }),
  };
}

const idOf = ({ path }: ServiceRequest): string | undefined => /\/screenings\/(\d+)$/.exec(path)?.[1];

const UNCHANGED = { '1-read-only': /as before the writing methods.*without it/ };

export const readOnly: readonly Fault[] = [
  ...fullFaults({ '1-read-only': /no screening that was not there before/ })({
    'POST stores a screening': writable((stored, { method, body }) => {
      if (method !== 'POST') return undefined;
      const { id, testTime } = JSON.parse(body.toString()) as { id: number; testTime: string };
      stored.set(String(id), screening(String(id), testTime));
      return done();
    }),
  }),
  ...fullFaults(UNCHANGED)({
    'DELETE takes a screening away': writable((stored, request) => {
      const id = idOf(request);
      if (request.method !== 'DELETE' || id === undefined) return undefined;
      stored.delete(id);
      return nothingToSay();
    }),
    'DELETE of the collection empties it, and is answered 404': writable((stored, { method, path }) => {
      if (method === 'DELETE' && path.endsWith('/screenings')) stored.clear();
      return undefined;
    }),
  }),
  ...tripping({ '1-read-only': /with other values/ })({
    "PATCH of any id touches every screening of the token's tenant": patchingAll(),
  }),
  ...tripping({ '1-read-only-refused': /a 4xx or 501.*204/ })({
    'PUT and PATCH are 204, and do nothing': middleware(
      () => (request, next) => (isWriting(request, 'PUT', 'PATCH') ? nothingToSay() : next(request)),
    ),
  }),
  ...fullFaults({ '1-read-only-refused': /a 4xx or 501.*200/ })({
    'DELETE is answered with a page': requests((request) => {
      const path = `${request.path}?from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z`;
      return request.method === 'DELETE' && isScreenings(request)
        ? { ...request, method: 'GET', path }
        : request;
    }),
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
