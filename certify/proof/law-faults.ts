/** A fault for every law, as rare as possible while the law must still find it in nearly every run. */
import { compareInstants, instant, shift } from '../../engine/data/instant.ts';
import { errorAnswer } from '../../reference-server/http/http.ts';
import type { PageQuery, StoredPage } from '../../reference-server/parts.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import {
  instead,
  isScreenings,
  isTokenRequest,
  middleware,
  oauthError,
  queryOf,
  requests,
  storedPages,
  withQuery,
} from '../../reference-server/run/alter.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { RULES, rows } from '../../reference-server/faults/rows.ts';
import type { Mode as TargetMode } from './faults.ts';

/** filled: a complete target file with a tenant to fill. */
export type Mode = TargetMode | 'filled';

interface LawFault {
  /** The title of the law that must find it. */
  readonly law: string;
  readonly name: string;
  readonly server: ServerOptions;
  /** What the law knows about the server. */
  readonly mode: Mode;
}

/** A fault in the reference server's collection. */
function collected(name: string): Pick<LawFault, 'name' | 'server'> {
  const fault = FAULTS.find((one) => one.name === name);
  if (!fault?.server) throw new Error(`no fault is called "${name}"`);
  return { name, server: fault.server };
}

const without = (page: StoredPage, index: number): StoredPage => ({
  ...page,
  items: page.items.filter((_, i) => i !== index),
});

/** Alters pages deeper than `depth` in a walk, at some page sizes. The last item and next stay the same. */
const deep = (
  concerns: (pageSize: number) => boolean,
  depth: number,
  alter: (page: StoredPage) => StoredPage,
): ServerOptions =>
  storedPages(() => {
    const depths = new Map<string, number>();
    return async (query, ask) => {
      const page = await ask(query);
      const { tenantId, to, pageSize, fromId } = query;
      const keyOf = (id: bigint | undefined): string =>
        [tenantId, to.seconds, to.fraction, pageSize, id].join(' ');
      const here = fromId === undefined ? 1 : (depths.get(keyOf(fromId)) ?? 1);
      depths.set(keyOf(page.items.at(-1)?.id), here + 1);
      return here > depth && concerns(pageSize) && page.items.length > 1 ? alter(page) : page;
    };
  });

/** Page sizes that are rarely chosen by hand. */
const odd = (pageSize: number): boolean =>
  (pageSize > 20 && pageSize < 47) || (pageSize > 50 && pageSize < 99);

/** No screening has these offsets, so example windows do not contain them. */
const oddMinutes = /[+-]\d\d:(15|59)$/;

/** OFFSET paging: next is a position in the list, whatever has been inserted since. */
const byPosition = (): ServerOptions =>
  storedPages(() => {
    const places = new Map<string, { from: PageQuery['from']; offset: number }>();
    return async ({ fromId, ...query }, ask) => {
      const keyOf = (id: bigint): string =>
        [query.tenantId, query.to.seconds, query.to.fraction, query.pageSize, id].join(' ');
      const place = fromId === undefined ? { from: query.from, offset: 0 } : places.get(keyOf(fromId));
      if (!place) return ask({ ...query, fromId: fromId! });
      const all = await ask({ ...query, from: place.from, pageSize: place.offset + query.pageSize });
      const items = all.items.slice(place.offset);
      const last = items.at(-1);
      if (last) places.set(keyOf(last.id), { from: place.from, offset: place.offset + items.length });
      return { items, more: all.more };
    };
  });

/** Drops an item of later pages while another request is in progress, at rarely used page sizes. */
const sharedState = (): ServerOptions =>
  storedPages(() => {
    let busy = 0;
    return async (query, ask) => {
      busy += 1;
      const crowded = busy > 1;
      try {
        const page = await ask(query);
        return (crowded || busy > 1) &&
          odd(query.pageSize) &&
          query.fromId !== undefined &&
          page.items.length > 1
          ? without(page, 0)
          : page;
      } finally {
        busy -= 1;
      }
    };
  });

/** Drops the first item of a page on every second request for it. */
const forgetful = (): ServerOptions =>
  storedPages(() => {
    const asked = new Map<string, number>();
    return async (query, ask) => {
      const page = await ask(query);
      const key = JSON.stringify(query, (_, value: unknown) =>
        typeof value === 'bigint' ? String(value) : value,
      );
      const times = (asked.get(key) ?? 0) + 1;
      asked.set(key, times);
      return times % 2 === 0 && odd(query.pageSize) && page.items.length > 2 ? without(page, 0) : page;
    };
  });

/** Replaces a field of the form before the server reads it. */
const form = (name: string, change: (value: string) => string | undefined): ServerOptions =>
  middleware(() => (request, next) => {
    if (!isTokenRequest(request)) return next(request);
    const fields = new URLSearchParams(request.body.toString());
    if (fields.getAll(name).length !== 1) return next(request);
    const value = change(fields.get(name) ?? '');
    if (value === undefined) return oauthError(500, 'server_error');
    fields.set(name, value);
    return next({ ...request, body: Buffer.from(fields.toString()) });
  });

const EXACT = 'a traversal of any window at any page size returns what is known of it, once and in order';

export const LAW_FAULTS: readonly LawFault[] = [
  {
    law: EXACT,
    mode: 'full',
    ...collected('two neighbours change places at page size 7 after the fifth page'),
  },
  {
    law: EXACT,
    mode: 'full',
    ...collected('where three screenings tie across a boundary the second is lost'),
  },
  {
    law: EXACT,
    mode: 'full',
    name: 'pages after the fourth lose their second item, at page sizes from 21 to 46',
    server: deep(
      (size) => size > 20 && size < 47,
      4,
      (page) => without(page, 1),
    ),
  },
  {
    law: EXACT,
    mode: 'full',
    ...collected('a window that begins on a fraction of a millisecond begins a millisecond late'),
  },
  {
    law: 'two page sizes give the same traversal',
    mode: 'bare',
    name: 'pages after the first lose their first item, at rarely used page sizes from 21 on',
    server: deep(odd, 1, (page) => without(page, 0)),
  },
  {
    law: 'a window cut in two holds what the whole holds',
    mode: 'bare',
    name: 'a window that begins on a fraction of a second lacks its first item, at rarely used page sizes',
    server: storedPages(() => async (query, ask) => {
      const page = await ask(query);
      const begins = query.fromId === undefined && query.from.fraction !== '';
      return begins && odd(query.pageSize) && page.items.length > 1 ? without(page, 0) : page;
    }),
  },
  {
    law: 'a traversal that begins after any item of another returns the rest of it',
    mode: 'bare',
    name: 'the cursor compares with >= at rarely used page sizes',
    server: storedPages(
      () => (query, ask) =>
        query.fromId !== undefined && odd(query.pageSize)
          ? ask({ ...query, fromId: query.fromId - 1n })
          : ask(query),
    ),
  },
  {
    law: 'another spelling of the same instants gives the same screenings',
    mode: 'bare',
    ...collected('an offset of five hours is taken for four'),
  },
  {
    law: 'another spelling of the same instants gives the same screenings',
    mode: 'bare',
    name: 'nine hours west are taken for eight',
    server: requests((request) =>
      isScreenings(request)
        ? withQuery(request, (query) => {
            for (const name of ['from', 'to'])
              if (query.has(name)) query.set(name, query.get(name)!.replace(/-09:(\d\d)$/, '-08:$1'));
          })
        : request,
    ),
  },
  {
    law: 'another spelling of the same instants gives the same screenings',
    mode: 'bare',
    name: 'the minutes of an offset are rounded to quarters of an hour',
    server: rows({
      read: (text, name) => {
        const sign = /([+-])\d\d:59$/.exec(text)?.[1];
        const at = RULES.read(text, name);
        return sign ? shift(at, sign === '+' ? -60n : 60n, 0) : at;
      },
    }),
  },
  {
    law: 'a smaller window holds a slice of what the larger holds',
    mode: 'bare',
    name: 'a page of 1000 that holds 9 to 40 items lacks the one in its middle',
    server: storedPages(() => async (query, ask) => {
      const page = await ask(query);
      const { length } = page.items;
      return query.pageSize === 1000 && length >= 9 && length <= 40 ? without(page, length >> 1) : page;
    }),
  },
  {
    law: 'a window of no width is empty, however its edges are spelled',
    mode: 'bare',
    name: 'a window of no width holds what lies there where an offset with odd minutes is among its edges',
    server: rows({
      ends: (row, asked) =>
        compareInstants(asked.from, asked.to) === 0 &&
        ['from', 'to'].some((name) => oddMinutes.test(asked.raw.get(name) ?? ''))
          ? compareInstants(row.at, asked.to) <= 0
          : RULES.ends(row, asked),
    }),
  },
  {
    law: 'the same request twice begins with the same items',
    mode: 'bare',
    name: 'every second time a page lacks its first item, at rarely used page sizes',
    server: forgetful(),
  },
  {
    law: 'concurrent traversals return what each returns alone',
    mode: 'bare',
    name: 'a later page loses an item while another request is answered, at rarely used page sizes',
    server: sharedState(),
  },
  {
    law: 'a window one instant wide holds exactly what lies there',
    mode: 'full',
    name: 'a window of a microsecond and less holds one item at most, in pages of a thousand',
    server: storedPages(() => async (query, ask) => {
      const page = await ask(query);
      const narrow = compareInstants(shift(query.from, 1n), query.to) >= 0;
      const whole = query.pageSize === 1000 && query.fromId === undefined;
      return narrow && whole ? { items: page.items.slice(0, 1), more: false } : page;
    }),
  },
  {
    law: 'what is nearly RFC 3339 is refused',
    mode: 'bare',
    name: 'a third digit where two are due is not looked at',
    server: requests((request) =>
      isScreenings(request)
        ? withQuery(request, (query) => {
            for (const name of ['from', 'to'])
              if (query.has(name))
                query.set(name, query.get(name)!.replace(/(?<=[-T:+]\d\d)\d(?=[-T:Z.+]|$)/g, ''));
          })
        : request,
    ),
  },
  {
    law: 'what is nearly an integer is refused',
    mode: 'bare',
    name: 'thousands and halves are cut off integers',
    server: requests((request) =>
      isScreenings(request)
        ? withQuery(request, (query) => {
            for (const name of ['pageSize', 'from_id'])
              if (query.has(name)) query.set(name, query.get(name)!.replace(/,000|\/2/, ''));
          })
        : request,
    ),
  },
  {
    law: 'a page size beyond the bounds is refused',
    mode: 'bare',
    name: 'page sizes from a thousand times the maximum on are cut down to it',
    server: requests((request) => {
      const size = Number(queryOf(request).get('pageSize'));
      return isScreenings(request) && size >= 1_000_000 && size < 2 ** 31
        ? withQuery(request, (query) => query.set('pageSize', '1000'))
        : request;
    }),
  },
  {
    law: 'no query, however odd, makes the server fail',
    mode: 'bare',
    name: 'a bracket in the name of a parameter is a crash',
    server: instead((request) =>
      [...queryOf(request).keys()].some((name) => /[[\]{}]/.test(name))
        ? errorAnswer(500, 'internal_error', 'it crashed')
        : undefined,
    ),
  },
  {
    law: 'a token request with any other grant_type is refused',
    mode: 'bare',
    name: 'a grant_type of eight and more letters that no grant has is client_credentials',
    server: form('grant_type', (value) => (/^x_.{6,}$/.test(value) ? 'client_credentials' : value)),
  },
  {
    law: 'a token request with any other scope is refused',
    mode: 'bare',
    name: 'an unknown scope of eight and more letters is the default scope',
    server: form('scope', (value) => (/^x\..{6,}$/.test(value) ? 'screenings.read' : value)),
  },
  {
    law: 'a token request with any other client_id is refused',
    mode: 'bare',
    name: 'a client_id beyond letters, digits and hyphens is a crash',
    server: form('client_id', (value) => (/[^\w-]/.test(value) ? undefined : value)),
  },
  {
    law: 'a token request with any other client_secret is refused',
    mode: 'full',
    name: 'a client_secret with a sign that forms encode is a crash',
    server: form('client_secret', (value) => (/[%&=+ é~]/.test(value) ? undefined : value)),
  },
  {
    law: 'a token with any letter changed is refused',
    mode: 'bare',
    name: 'the first two fifths of a signature are not compared',
    server: fewerLetters(),
  },
  {
    law: 'walks over generated data return it once and in order',
    mode: 'filled',
    name: 'where three screenings tie across a boundary the second is lost, in one tenant',
    server: storedPages(() => async (query, ask) => {
      const page = await ask(query);
      const { tenantId, from, fromId } = query;
      if (tenantId !== TENANTS.scratch || fromId === undefined) return page;
      const tied = page.items.filter(({ testTime }) => compareInstants(instant(testTime), from) === 0);
      return tied.length === 2 ? without(page, 0) : page;
    }),
  },
  {
    law: 'a traversal returns what was stored before it once, while more data arrives',
    mode: 'filled',
    name: 'pages by OFFSET',
    server: byPosition(),
  },
];

function fewerLetters(): ServerOptions {
  const compared = (token: string): string => {
    const [header, payload, signature = ''] = token.split('.');
    return `${header}.${payload}.${signature.slice(signature.length * 0.4)}`;
  };
  return {
    wrapParts: (parts) => {
      const issued = new Map<string, string>();
      const { tokens } = parts;
      return {
        ...parts,
        tokens: {
          async mint(claims) {
            const token = await tokens.mint(claims);
            issued.set(compared(token), token);
            return token;
          },
          verify: (token, nowSeconds) => tokens.verify(issued.get(compared(token)) ?? token, nowSeconds),
        },
      };
    },
  };
}
