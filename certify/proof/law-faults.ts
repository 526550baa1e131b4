/** A fault for every law, as rare as possible while the law must still find it in nearly every run. */
import { compareInstants, instant, sayInstant, shift } from '../../engine/data/instant.ts';
import type { PageQuery } from '../../reference-server/parts.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { answering, reading, storedPages } from '../../reference-server/run/alter.ts';
import { cachedBy } from '../../reference-server/faults/bearer.ts';
import { cache } from '../../reference-server/faults/cache.ts';
import { alterStored, byDepth, RULES, rows, without } from '../../reference-server/faults/rows.ts';
import { refusing, single } from '../../reference-server/faults/forms.ts';
import type { Mode } from './faults.ts';

export interface LawFault {
  readonly law: string;
  readonly name: string;
  readonly server: ServerOptions;
  /** What the law knows about the server. */
  readonly mode: Mode;
}

const foundBy = (law: string, mode: Mode, servers: Readonly<Record<string, ServerOptions>>): LawFault[] =>
  Object.entries(servers).map(([name, server]) => ({ law, mode, name, server }));

/** Drops an item of pages deeper than `most`, at some page sizes. The last item and next stay the same. */
const lossy = (concerns: (pageSize: number) => boolean, most: number, index: number): ServerOptions =>
  byDepth((page, depth, { pageSize }) =>
    depth > most && concerns(pageSize) && page.items.length > 1 ? without(page, index) : page,
  );

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
        const isLater = query.fromId !== undefined && page.items.length > 1;
        return (crowded || busy > 1) && odd(query.pageSize) && isLater ? without(page, 0) : page;
      } finally {
        busy -= 1;
      }
    };
  });

/** Caches answers whose body and query match, by URL. */
const cachedForever = (body: RegExp, where = (_: URLSearchParams): boolean => true): ServerOptions =>
  cache((path, query) => `${path}?${query}`, {
    isGuarded: false,
    isKept: (answer, query) => body.test(String(answer.body)) && where(query),
  });

/** Whether more follow is decided by a number that is counted at the first request for a window. */
const countedOnce = (): ServerOptions =>
  storedPages(() => {
    const counts = new Map<string, number>();
    return async (query, ask) => {
      const { tenantId, fromId, from, to } = query;
      const key = [tenantId, fromId, ...[from, to].map(sayInstant)].join(' ');
      if (!counts.has(key)) counts.set(key, (await ask({ ...query, pageSize: 1_000_000 })).items.length);
      const page = await ask(query);
      return { ...page, more: page.items.length < counts.get(key)! };
    };
  });

export const LAW_FAULTS: readonly LawFault[] = [
  // laws.test.ts shrinks further faults under this law.
  ...foundBy(
    'a traversal of any window at any page size returns what is known of it, once and in order',
    'full',
    {
      'pages after the fourth lose their second item, at page sizes from 21 to 46': lossy(
        (size) => size > 20 && size < 47,
        4,
        1,
      ),
    },
  ),
  ...foundBy('two page sizes give the same traversal', 'bare', {
    'pages after the first lose their first item, at rarely used page sizes from 21 on': lossy(odd, 1, 0),
  }),
  ...foundBy('a window cut in two holds what the whole holds', 'bare', {
    'a page of 1000 that holds 9 to 40 items lacks the one in its middle': alterStored(
      (page, { pageSize }) => {
        const { length } = page.items;
        return pageSize === 1000 && length >= 9 && length <= 40 ? without(page, length >> 1) : page;
      },
    ),
  }),
  ...foundBy('a traversal that begins after any item of another returns the rest of it', 'bare', {
    'the cursor compares with >= at rarely used page sizes': storedPages(
      () => (query, ask) =>
        query.fromId !== undefined && odd(query.pageSize)
          ? ask({ ...query, fromId: query.fromId - 1n })
          : ask(query),
    ),
  }),
  ...foundBy('another spelling of the same instants gives the same screenings', 'bare', {
    'the minutes of an offset are rounded to quarters of an hour': rows({
      read: (text, name) => {
        const sign = /([+-])\d\d:59$/.exec(text)?.[1];
        const at = RULES.read(text, name);
        return sign ? shift(at, sign === '+' ? -60n : 60n, 0) : at;
      },
    }),
  }),
  ...foundBy('a window of no width is empty, however its edges are spelled', 'bare', {
    'a window of no width holds what lies there where an offset with odd minutes is among its edges': rows({
      ends: (row, asked) =>
        compareInstants(asked.from, asked.to) === 0 &&
        ['from', 'to'].some((name) => oddMinutes.test(asked.raw.get(name) ?? ''))
          ? compareInstants(row.at, asked.to) <= 0
          : RULES.ends(row, asked),
    }),
  }),
  ...foundBy('concurrent traversals return what each returns alone', 'bare', {
    'a later page loses an item while another request is answered, at rarely used page sizes': sharedState(),
  }),
  ...foundBy('a window one instant wide holds exactly what lies there', 'full', {
    'a window of a microsecond and less holds one item at most, in pages of a thousand': alterStored(
      (page, { from, to, pageSize, fromId }) =>
        compareInstants(shift(from, 1n), to) >= 0 && pageSize === 1000 && fromId === undefined
          ? { items: page.items.slice(0, 1), more: false }
          : page,
    ),
  }),
  ...foundBy('what is nearly RFC 3339 is refused', 'bare', {
    'a third digit where two are due is not looked at': reading(['from', 'to'], (text) =>
      text.replace(/(?<=[-T:+]\d\d)\d(?=[-T:Z.+]|$)/g, ''),
    ),
    'a field of two digits that is left out after a colon is 00': reading(['from', 'to'], (text) =>
      text.replace(/:(?=[:Z.+-]|$)/g, ':00'),
    ),
    'a month and a day of one digit are read': reading(['from', 'to'], (text) =>
      text.replace(/(?<=^\d{4}.*-)\d(?=[-T])/g, '0$&'),
    ),
  }),
  ...foundBy('what is nearly an integer is refused', 'bare', {
    'thousands and halves are cut off integers': reading(['pageSize', 'from_id'], (text) =>
      text.replace(/,000|\/2/, ''),
    ),
  }),
  ...foundBy('a page size beyond the bounds is refused', 'bare', {
    'page sizes from a thousand times the maximum on are cut down to it': reading(['pageSize'], (text) =>
      Number(text) >= 1_000_000 && Number(text) < 2 ** 31 ? '1000' : text,
    ),
  }),
  ...foundBy('no query, however odd, makes the server fail', 'bare', {
    'a bracket in the name of a parameter is a crash': answering('500 internal_error', (_, query) =>
      [...query.keys()].some((name) => /[[\]{}]/.test(name)),
    ),
  }),
  ...foundBy('a token request with any other grant_type is refused', 'bare', {
    'a grant_type that is a URN is client_credentials': single('grant_type', (value) =>
      value.startsWith('urn:') ? 'client_credentials' : value,
    ),
  }),
  ...foundBy('a token request with any other scope is refused', 'bare', {
    'a scope with a colon is the default scope': single('scope', (value) =>
      value.includes(':') ? 'screenings.read' : value,
    ),
  }),
  ...foundBy('a token request with any other client_id is refused', 'bare', {
    'a client_id beyond letters, digits and hyphens is a crash': refusing('500 server_error', (_, form) =>
      /[^\w-]/.test(form.get('client_id')?.join('') ?? ''),
    ),
  }),
  ...foundBy('a token request with any other client_secret is refused', 'full', {
    'a client_secret with a sign that forms encode is a crash': refusing('500 server_error', (_, form) =>
      /[%&=+ é~]/.test(form.get('client_secret')?.join('') ?? ''),
    ),
  }),
  ...foundBy('a token with any letter changed is refused', 'bare', {
    'the first two fifths of a signature are not compared': cachedBy((token) =>
      token.replace(/[^.]*$/, (signature) => signature.slice(signature.length * 0.4)),
    ),
  }),
  ...foundBy('walks over generated data return it once and in order', 'filled', {
    'the second of three ties across a page boundary is lost, in one tenant': alterStored(
      (page, { tenantId, from, fromId }) => {
        if (tenantId !== TENANTS.scratch || fromId === undefined) return page;
        const tied = page.items.filter(({ testTime }) => compareInstants(instant(testTime), from) === 0);
        return tied.length === 2 ? without(page, 0) : page;
      },
    ),
  }),
  ...foundBy('a traversal returns what was stored before it once, while more data arrives', 'filled', {
    'pages by OFFSET': byPosition(),
  }),
  ...foundBy('a window that was empty returns what was stored since', 'filled', {
    'empty pages are cached without an end': cachedForever(/^\{"items":\[\]/),
    'pages with screenings are cached without an end': cachedForever(/^\{"items":\[\{/),
    'pages with a next are cached without an end': cachedForever(/"next":/),
    'the number of screenings in a window is cached without an end': countedOnce(),
    'pages of windows that have ended are cached without an end': cachedForever(/^\{"items":/, (query) => {
      const to = query.get('to');
      return to !== null && Date.parse(to) < Date.now();
    }),
  }),
];
