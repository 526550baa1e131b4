/** Section 4.2, rules 5 and 6: a next that works only once, only for a while, or only with one token. */
import type { ServiceAnswer } from '../http/http.ts';
import {
  isScreenings,
  middleware,
  nextQuery,
  queryOf,
  refusal,
  storedPages,
  type Middleware,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { pageFaults, type Fault } from './fault.ts';

/** Numbers every next (`cursor=1` …). `step` answers requests with a number, `mark`; `given` is the latest number. */
function numbered(
  make: () => (mark: string, given: number, ...args: Parameters<Middleware>) => ReturnType<Middleware>,
): ServerOptions {
  let given = 0;
  const marking = nextQuery((query) => query.set('cursor', String((given += 1))));
  return {
    wrapHandler: (handler) => {
      const plain = marking.wrapHandler!(handler);
      const step = make();
      return async (request) => {
        const mark = queryOf(request).get('cursor');
        return isScreenings(request) && mark !== null ? step(mark, given, request, plain) : plain(request);
      };
    },
  };
}

const gone = (): ServiceAnswer => refusal('400 invalid_request');

/** Path and query of the page's next. */
function nextPath({ body }: ServiceAnswer): string | undefined {
  const url = /"next":"([^"]*)"/.exec(String(body))?.[1];
  return url && new URL(url).pathname + new URL(url).search;
}

export const nextAgain: readonly Fault[] = [
  ...pageFaults({ '4.2-r5-exactly-once': /200.*400/ })({
    'a next is good for one request': numbered(() => {
      const used = new Set<string>();
      return (mark, _, request, next) => {
        if (used.has(mark)) return gone();
        used.add(mark);
        return next(request);
      };
    }),
    'a next is gone after sixty further requests': numbered(
      () => (mark, given, request, next) => (given - Number(mark) > 60 ? gone() : next(request)),
    ),
    'a next is bound to the token that it was given to': middleware(() => {
      const holders = new Map<string, string>();
      return async (request, next) => {
        const holder = request.headers['authorization'] ?? '';
        const owner = holders.get(request.path);
        if (owner !== undefined && owner !== holder) return gone();
        const answer = await next(request);
        const path = nextPath(answer);
        if (isScreenings(request) && path !== undefined) holders.set(path, holder);
        return answer;
      };
    }),
  }),
  ...pageFaults({ '4.2-repeatable': /again item|items of the same next/ })({
    'a next that was asked before gives the page after it': numbered(() => {
      const asked = new Set<string>();
      return async (mark, _, request, next) => {
        const answer = await next(request);
        const path = nextPath(answer);
        if (asked.has(mark) && path !== undefined) return next({ ...request, path });
        asked.add(mark);
        return answer;
      };
    }),
  }),
  ...pageFaults(
    { '4.2-r5-exactly-once': /is missing|screenings/ },
    { bare: false, large: true },
  )({
    'pages of 1000 lose their first screening from the fourth on': deepPages((page) => ({
      ...page,
      items: page.items.slice(1),
    })),
  }),
  ...pageFaults(
    { '2.4-next': /no next/ },
    { large: true },
  )({
    'walks end after three pages of 1000': deepPages(
      (page) => page,
      3,
      (page) => ({ ...page, more: false }),
    ),
  }),
];

type Alter = <P extends { readonly items: readonly unknown[]; readonly more: boolean }>(page: P) => P;

/** Alters pages of size 1000 after the first `depth` of a traversal; `last` alters page number `depth`. */
function deepPages(alter: Alter, depth = 3, last: Alter = (page) => page): ServerOptions {
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
