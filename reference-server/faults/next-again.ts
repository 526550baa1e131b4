/** Section 4.2, rules 5 and 6: a next that is no address but a place that moves, or a ticket for one ride. */
import { errorAnswer } from '../http/http.ts';
import { isScreenings, middleware, nextUrls, queryOf, storedPages, type Middleware } from '../run/alter.ts';
import type { Fault } from './fault.ts';

/** Every next bears a parameter of the server's own; `step` decides what becomes of those that come back. */
const marked = (make: () => Middleware, mark: () => string = () => 'x'): NonNullable<Fault['server']> => {
  const marking = nextUrls((next) => {
    next.searchParams.set('cursor', mark());
    return next;
  });
  return {
    wrapHandler: (handler) => {
      const step = middleware(make).wrapHandler!(marking.wrapHandler!(handler));
      const plain = marking.wrapHandler!(handler);
      return (request) => (isScreenings(request) && queryOf(request).has('cursor') ? step : plain)(request);
    },
  };
};

const gone = () => errorAnswer(400, 'invalid_request', 'this cursor is no longer there');

const WALK = ['4.2-repeatable', '4.2-success', '4.2-from_id', '4.2-window'] as const;

export const nextAgain: readonly Fault[] = [
  {
    name: 'a next is good for one request',
    trips: { '4.2-r5-exactly-once': /200.*400/ },
    mayTrip: WALK,
    server: (() => {
      let number = 0;
      return marked(
        () => {
          const used = new Set<string>();
          return (request, next) => {
            const mark = queryOf(request).get('cursor')!;
            if (used.has(mark)) return gone();
            used.add(mark);
            return next(request);
          };
        },
        () => String((number += 1)),
      );
    })(),
  },
  {
    name: 'a next that was asked before gives the page after it',
    trips: { '4.2-repeatable': /again item|items of the same next/ },
    mayTrip: ['4.2-r4-order', '4.2-r5-exactly-once', '4.2-window', '4.2-from_id', '2.4-next'],
    server: (() => {
      let number = 0;
      return marked(
        () => {
          const asked = new Set<string>();
          return async (request, next) => {
            const mark = queryOf(request).get('cursor')!;
            const answer = await next(request);
            const url = /"next":"([^"]*)"/.exec(String(answer.body))?.[1];
            if (!asked.has(mark) || url === undefined) {
              asked.add(mark);
              return answer;
            }
            const { pathname, search } = new URL(url);
            return next({ ...request, path: `${pathname}${search}` });
          };
        },
        () => String((number += 1)),
      );
    })(),
  },
  {
    name: 'a next is gone after sixty further requests',
    trips: { '4.2-r5-exactly-once': /200.*400/ },
    mayTrip: WALK,
    server: (() => {
      let number = 0;
      return marked(
        () => (request, next) =>
          number - Number(queryOf(request).get('cursor')) > 60 ? gone() : next(request),
        () => String((number += 1)),
      );
    })(),
  },
  {
    name: 'a next is bound to the token that it was given to',
    trips: { '4.2-r5-exactly-once': /200.*400/ },
    mayTrip: WALK,
    server: {
      wrapHandler: (handler) => {
        const holders = new Map<string, string>();
        return async (request) => {
          const holder = request.headers['authorization'] ?? '';
          const owner = holders.get(request.path);
          if (owner !== undefined && owner !== holder) return gone();
          const answer = await handler(request);
          const url = /"next":"([^"]*)"/.exec(String(answer.body))?.[1];
          if (isScreenings(request) && url !== undefined) {
            const { pathname, search } = new URL(url);
            holders.set(`${pathname}${search}`, holder);
          }
          return answer;
        };
      },
    },
  },
  {
    name: 'pages of 1000 lose their first screening from the fourth on',
    trips: { '4.2-r5-exactly-once': /is missing|screenings/ },
    mayTrip: ['4.2-window', '4.2-from_id', '4.2-repeatable'],
    bare: false,
    large: true,
    server: deepPages((page) => ({ ...page, items: page.items.slice(1) })),
  },
  {
    name: 'walks end after three pages of 1000',
    trips: { '2.4-next': /no next/ },
    mayTrip: ['4.2-window', '4.2-r5-exactly-once', '4.2-from_id', '4.2-r7-link'],
    large: true,
    server: deepPages(
      (page) => page,
      3,
      (page) => ({ ...page, more: false }),
    ),
  },
];

type Alter = <P extends { readonly items: readonly unknown[]; readonly more: boolean }>(page: P) => P;

/** Alters pages of the largest size after `depth` pages of their traversal; `last` alters the one before. */
function deepPages(alter: Alter, depth = 3, last: Alter = (page) => page): NonNullable<Fault['server']> {
  return storedPages(() => {
    const depths = new Map<string, number>();
    return async (query, ask) => {
      const page = await ask(query);
      if (query.pageSize !== 1000) return page;
      const here = query.fromId === undefined ? 1 : (depths.get(`${query.to.seconds} ${query.fromId}`) ?? 1);
      const end = page.items.at(-1);
      if (end) depths.set(`${query.to.seconds} ${end.id}`, here + 1);
      return here > depth ? alter(page) : here === depth ? last(page) : page;
    };
  });
}
