import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  compareInstants,
  cutInstant,
  formatInstant,
  instant,
  shift,
  type Instant,
} from '../../engine/data/instant.ts';
import {
  answering,
  defaulting,
  middleware,
  nextQuery,
  pages,
  queryOf,
  isScreenings,
  storedPages,
  windowOf,
} from '../../reference-server/run/alter.ts';
import {
  rows,
  RULES,
  alterStored,
  byId,
  byInstant,
  itemText,
  retimed,
  screening,
  withAdded,
} from '../../reference-server/faults/rows.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import type { Fault } from '../../reference-server/faults/fault.ts';
import { TENANTS } from '../../reference-server/run/tenants.ts';
import { test } from '../../reference-server/faults/testing.ts';
import { certifyFault } from './faults.ts';
import { selectIds } from '../certify.ts';

test.describe.configure({ mode: 'parallel' });

const offsets = new Map<string, Map<bigint, bigint>>();
function local(zone: string): (at: Instant) => Instant {
  const known = offsets.get(zone) ?? new Map<bigint, bigint>();
  offsets.set(zone, known);
  const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
  return (at) => {
    const half = at.seconds / 1800n;
    let off = known.get(half);
    if (off === undefined) {
      let name = 'GMT';
      try {
        name = format
          .formatToParts(new Date(Number(half * 1800n) * 1000))
          .find((p) => p.type === 'timeZoneName')!.value;
      } catch {}
      const m = /([+-])(\d\d):(\d\d)/.exec(name);
      off = m ? BigInt((m[1] === '-' ? -1 : 1) * (Number(m[2]) * 3600 + Number(m[3]) * 60)) : 0n;
      known.set(half, off);
    }
    return { ...at, seconds: at.seconds + off };
  };
}
const inZone = (zone: string): ServerOptions => {
  const l = local(zone);
  return rows({ at: (t) => l(instant(t)), read: (t) => l(instant(t)) });
};
const invertedIn = (zone: string): ServerOptions => {
  const l = local(zone);
  return answering('400 invalid_time_range', (query, { headers }) => {
    const [from, to] = windowOf(query);
    return !!headers['authorization'] && !!from && !!to && compareInstants(l(from), l(to)) > 0;
  });
};
const floatMicros = (text: string): Instant => {
  const a = instant(text);
  const f =
    a.fraction === ''
      ? 0
      : parseFloat(`${Number((a.seconds % 60n) + (a.seconds < 0 ? 60n : 0n)) % 60}.${a.fraction}`) % 60;
  const whole = { ...a, fraction: '' };
  if (a.fraction === '') return whole;
  const sec = Math.floor(f);
  return shift(shift(whole, 0n), BigInt(Math.floor(f * 1e6) - sec * 1_000_000), 6);
};
const isoWeekYear = (text: string): string => {
  const d = new Date(text);
  const day = (d.getUTCDay() + 6) % 7;
  d.setUTCDate(d.getUTCDate() - day + 3);
  return String(d.getUTCFullYear()).padStart(4, '0');
};
const weekYear = (text: string): string => {
  const u = formatInstant(instant(text), { digits: 6 });
  return isoWeekYear(u) + u.slice(4);
};
const cache = (keyOf: (query: URLSearchParams, path: string) => string): ServerOptions =>
  middleware(() => {
    const kept = new Map<string, any>();
    return async (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const key = keyOf(queryOf(request), request.path.split('?')[0]!);
      const answer = await next(request);
      if (answer.status !== 200) return answer;
      const held = kept.get(key);
      if (held) return held;
      kept.set(key, answer);
      return answer;
    };
  });
const zones: Record<string, ServerOptions> = {};
const B = instant('2024-07-01T00:00:00Z');
const before = (row: { at: Instant }, b: Instant) => compareInstants(row.at, b) < 0;

const F: Record<string, ServerOptions> = {
  'local New York': inZone('America/New_York'),
  'local New York, also inverted': {
    ...inZone('America/New_York'),
    ...{
      wrapHandler: ((h: never) =>
        invertedIn('America/New_York').wrapHandler!(
          inZoneCache('America/New_York').wrapHandler!(h),
        )) as never,
      wrapParts: inZoneCache('America/New_York').wrapParts!,
    },
  },
  'local Berlin': inZone('Europe/Berlin'),
  'local Sydney': inZone('Australia/Sydney'),
  'window compared in local time New York': invertedIn('America/New_York'),
  'window compared in local time Berlin': invertedIn('Europe/Berlin'),
  'float cursor': rows({
    begins: (row, { from, fromId }) => {
      const side = compareInstants(row.at, from);
      return fromId === undefined ? side >= 0 : side > 0 || (side === 0 && Number(row.id) > Number(fromId));
    },
  }),
  'dedup by float id': alterStored((page) => ({
    ...page,
    items: [...new Map(page.items.map((i) => [Number(i.id), i])).values()],
  })),
  'silent cut to a year': rows({
    ends: (row, { from, to }) =>
      compareInstants(row.at, to) < 0 && row.at.seconds < from.seconds + 366n * 86_400n,
  }),
  'silent cut to 31 days': rows({
    ends: (row, { from, to }) =>
      compareInstants(row.at, to) < 0 && row.at.seconds < from.seconds + 31n * 86_400n,
  }),
  'silent cut to ten years': rows({
    ends: (row, { from, to }) =>
      compareInstants(row.at, to) < 0 && row.at.seconds < from.seconds + 3650n * 86_400n,
  }),
  'cursor time looked up by id': (() => {
    const known = new Map<string, Instant>();
    return rows({
      exists: (row) => known.set(`${row.id}`, row.at) !== undefined,
      begins: (row, asked) =>
        RULES.begins(row, {
          ...asked,
          from: asked.fromId === undefined ? asked.from : (known.get(`${asked.fromId}`) ?? asked.from),
        }),
    });
  })(),
  'cache key without from': cache((q, p) => {
    q.delete('from');
    return `${p} ${q}`;
  }),
  'cache key to the minute': cache((q, p) => {
    for (const n of ['from', 'to']) q.set(n, formatInstant(instant(q.get(n)!)).slice(0, 16));
    return `${p} ${q}`;
  }),
  'cache key to the second of instants': cache((q, p) => {
    for (const n of ['from', 'to']) q.set(n, String(instant(q.get(n)!).seconds));
    return `${p} ${q}`;
  }),
  'cache key of values sorted': cache((q, p) => `${p} ${[...q.values()].sort()}`),
  'cache key of values only': cache((q, p) => `${p} ${[...q.values()]}`),
  'cache key concatenated': cache(
    (q, p) => `${p}${q.get('from')}${q.get('to')}${q.get('pageSize') ?? ''}${q.get('from_id') ?? ''}`,
  ),
  'default page size 20 after cursor': defaulting(
    'pageSize',
    () => '20',
    (q) => q.has('from_id'),
  ),
  'default page size 20 of second tenant': defaulting(
    'pageSize',
    () => '20',
    (_, { path }) => path.includes(TENANTS.secondTenant),
  ),
  'param micros by float': rows({ read: floatMicros }),
  'leak of other tenants in ties': storedPages(() => async (query, ask) => {
    const page = await ask(query);
    if (query.fromId === undefined) return page;
    const other = query.tenantId === TENANTS.primary ? TENANTS.secondTenant : TENANTS.primary;
    const ties = (await ask({ ...query, tenantId: other, to: shift(query.from, 1n, 12) })).items;
    const at = (i: { testTime: string; id: bigint }) => ({ at: instant(i.testTime), id: i.id });
    const all = [...page.items, ...ties].sort(
      (a, b) => compareInstants(at(a).at, at(b).at) || (a.id < b.id ? -1 : 1),
    );
    return { items: all.slice(0, query.pageSize), more: page.more || all.length > query.pageSize };
  }),
  'zero width after cursor returns ties': rows({
    ends: (row, { from, to, fromId }) =>
      compareInstants(row.at, to) < 0 || (fromId !== undefined && compareInstants(row.at, from) === 0),
  }),
  'extra item only in pages of 500 and more': (() => {
    const extra = screening(TENANTS.primary, 4_400_001n, instant('2024-06-15T12:00:00.5Z'));
    const added = withAdded(
      () =>
        ({ tenantId, pageSize }) =>
          tenantId === TENANTS.primary && pageSize >= 500 ? [extra] : [],
    );
    return added;
  })(),
  'archive missing where the window spans the boundary': rows({
    begins: (row, a) =>
      RULES.begins(row, a) &&
      !(compareInstants(a.from, B) < 0 && compareInstants(a.to, B) > 0 && before(row, B)),
  }),
  'hot missing where the window spans the boundary': rows({
    begins: (row, a) =>
      RULES.begins(row, a) &&
      !(compareInstants(a.from, B) < 0 && compareInstants(a.to, B) > 0 && !before(row, B)),
  }),
  'first 2 hours missing unless asked for alone': rows({
    begins: (row, a) =>
      RULES.begins(row, a) && !(row.place < 20 && a.to.seconds > a.from.seconds + 86_400n * 200n),
  }),
  'position kept per token': middleware(() => {
    const at = new Map<string, string>();
    return async (request, next) => {
      const q = queryOf(request);
      const token = request.headers['authorization'] ?? '';
      if (!isScreenings(request) || !q.has('from_id') || !at.has(token)) {
        const a = await next(request);
        const u = /"next":"([^"]*)"/.exec(String(a.body))?.[1];
        if (u) at.set(token, new URL(u).pathname + new URL(u).search);
        return a;
      }
      const a = await next({ ...request, path: at.get(token)! });
      const u = /"next":"([^"]*)"/.exec(String(a.body))?.[1];
      if (u) at.set(token, new URL(u).pathname + new URL(u).search);
      else at.delete(token);
      return a;
    };
  }),
  'cursor in milliseconds': rows({
    begins: (row, a) =>
      a.fromId === undefined
        ? RULES.begins(row, a)
        : (() => {
            const s = compareInstants(cutInstant(row.at, 3), cutInstant(a.from, 3));
            return s > 0 || (s === 0 && row.id > a.fromId!);
          })(),
  }),
  'offset 00:00 refused': answering(
    '400 invalid_time_range',
    (q, r) => !!r.headers['authorization'] && ['from', 'to'].some((n) => /\+00:00$/.test(q.get(n) ?? '')),
  ),
  'month stepping': rows({
    ends: (row, a) => {
      if (!RULES.ends(row, a)) return false;
      const day = (i: Instant) => Number(formatInstant({ ...i, fraction: '' }).slice(8, 10));
      const ym = (i: Instant) => formatInstant({ ...i, fraction: '' }).slice(0, 7);
      return !(ym(row.at) === ym(a.to) && ym(a.from) !== ym(a.to) && day(a.from) > day(a.to));
    },
  }),
  'week year in to of next': nextQuery((q) => q.set('to', weekYear(q.get('to')!))),
  'week year in from of next': nextQuery((q) => q.set('from', weekYear(q.get('from')!))),
  'unpadded micros in next': nextQuery((q) => {
    const u = formatInstant(instant(q.get('from')!), { digits: 6 });
    q.set('from', u.replace(/\.0+(\d)/, '.$1'));
  }),
  'page size of the latest request': (() => {
    let latest = 100;
    return storedPages(() => async (query, ask) => {
      latest = query.pageSize;
      await sleep(2);
      return ask({ ...query, pageSize: latest });
    });
  })(),
  'cut by time, then sorted': rows({
    order: (a, b) =>
      byInstant(a, b) || Number((a.id * 2654435761n) % 65_521n) - Number((b.id * 2654435761n) % 65_521n),
    cut: (sel, { pageSize }) => ({
      items: sel.slice(0, pageSize).sort((a, b) => byInstant(a, b) || byId(a, b)),
      more: sel.length > pageSize,
    }),
  }),
  'ids as floats 1.0': itemText(/"id":(\d+)/, '"id":$1.0'),
  'ids as exponents': itemText(/"id":(\d+)/, '"id":$1e0'),
  'light items on pages of 500 and more': pages((page, q) => {
    if (Number(q.get('pageSize')) >= 500) page.items = page.items.map((i) => i.replace(/,"device".*$/s, '}'));
  }),
  'light items after a cursor': pages((page, q) => {
    if (q.has('from_id')) page.items = page.items.map((i) => i.replace(/,"device".*$/s, '}'));
  }),
  'testTime cut to ms on later pages': alterStored((page, q) =>
    q.fromId === undefined
      ? page
      : {
          ...page,
          items: page.items.map((i) => retimed(i, formatInstant(cutInstant(instant(i.testTime), 3)))),
        },
  ),
  'from_id compared as instants of the whole tie when from is not in UTC': rows({
    begins: (row, a) =>
      /Z$/.test(a.raw.get('from') ?? '') || a.fromId === undefined
        ? RULES.begins(row, a)
        : compareInstants(row.at, a.from) > 0,
  }),
  'from_id ignored when larger than 2^53': rows({
    begins: (row, a) =>
      a.fromId !== undefined && a.fromId > 2n ** 53n
        ? compareInstants(row.at, a.from) >= 0
        : RULES.begins(row, a),
  }),
  'next keeps unknown parameter out': {},
  'last page of exactly full size has next': alterStored((page, q) => ({
    ...page,
    more: page.more || (page.items.length === q.pageSize && q.pageSize > 20),
  })),
  'next lost where one more remains at sizes over 100': storedPages(() => async (q, ask) => {
    const p = await ask({ ...q, pageSize: q.pageSize + 1 });
    const left = await ask({ ...q, pageSize: q.pageSize + 2 });
    return p.items.length > q.pageSize && left.items.length === q.pageSize + 1 && q.pageSize > 100
      ? { items: p.items.slice(0, q.pageSize), more: false }
      : ask(q);
  }),
  'to in the year of from': rows({
    ends: (row, a) =>
      RULES.ends(row, a) &&
      !(
        formatInstant({ ...row.at, fraction: '' }).slice(0, 4) !==
          formatInstant({ ...a.from, fraction: '' }).slice(0, 4) &&
        a.to.seconds - a.from.seconds < 86_400n * 40n
      ),
  }),
  'sizes 128 to 255 are negative bytes': answering(
    '400 page_size_out_of_range',
    (q) => Number(q.get('pageSize')) > 127 && Number(q.get('pageSize')) < 250,
  ),
  'sizes above 512 are 512': storedPages(
    () => (q, ask) => ask({ ...q, pageSize: Math.min(q.pageSize, 512) }),
  ),
  'sizes 600 to 998 lose the last item': alterStored((p, q) =>
    q.pageSize >= 600 && q.pageSize < 999 ? { ...p, items: p.items.slice(0, -1) } : p,
  ),
  'sizes 30 to 45 lose ties': alterStored((p, q) =>
    q.pageSize >= 30 && q.pageSize <= 45 && q.fromId !== undefined ? { ...p, items: p.items.slice(1) } : p,
  ),
  'pageSize 200 is a thousand': storedPages(
    () => (q, ask) => ask({ ...q, pageSize: q.pageSize === 200 ? 1000 : q.pageSize }),
  ),
  'to exclusive on pages smaller than 1000 only': rows({
    ends: (row, { to, pageSize }) => compareInstants(row.at, to) < (pageSize === 1000 ? 1 : 0),
  }),
  'from exclusive on pages of 1000': rows({
    begins: (row, a) =>
      a.fromId === undefined && a.pageSize === 1000
        ? compareInstants(row.at, a.from) > 0
        : RULES.begins(row, a),
  }),
};
function inZoneCache(zone: string): ServerOptions {
  return (zones[zone] ??= inZone(zone));
}

const only = process.env['ZZ'] ? new RegExp(process.env['ZZ']) : /./;
const modes = (process.env['ZM'] ?? 'full,bare').split(',') as ('full' | 'bare')[];
for (const [name, server] of Object.entries(F)) {
  if (!only.test(name)) continue;
  for (const mode of modes)
    test(`${name}, ${mode}`, async ({ small }) => {
      const t0 = Date.now();
      const fault = { name, trips: {}, server } as Fault;
      const report = await certifyFault(
        small,
        fault,
        mode,
        selectIds(['2.3', '2.4', '4.2', '9']) as never,
        'in process',
        false,
      );
      const by = (s: string) => report.requirements.filter(({ status }) => status === s).map(({ id }) => id);
      const bad = [...by('fail'), ...by('error')];
      appendFileSync(
        process.env['ZZLOG'] ?? '/tmp/zz-faults.log',
        `${bad.length ? 'caught ' : 'ESCAPES'} ${name}, ${mode}: ${report.verdict} ${report.requests}r ${Date.now() - t0}ms ${bad.slice(0, 6)} warn[${by('warn')}]\n`,
      );
    });
}
