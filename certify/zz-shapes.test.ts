import { appendFileSync } from 'node:fs';
import type { Screening } from '../engine/data/screening.ts';
import { formatInstant, instant, shift } from '../engine/data/instant.ts';
import { parseScreening } from '../engine/data/dataset.ts';
import { generateScreenings } from '../fixtures/dataset/generator.ts';
import { startInProcess, test } from '../reference-server/faults/testing.ts';
import { TENANTS } from '../reference-server/run/tenants.ts';
import { createMemoryStore } from '../reference-server/store/memory.ts';
import { targetFor } from './proof/faults.ts';
import { certify } from './certify.ts';

test.describe.configure({ mode: 'parallel' });
const s = (id: bigint | number, testTime: string, further = ''): Screening =>
  parseScreening(`{"id":${id},"tenantId":"${TENANTS.primary}","testTime":"${testTime}"${further}}`);
const at = (base: string, micros: bigint, digits = 6, offsetMinutes?: number): string =>
  formatInstant(shift(instant(base), micros, digits), offsetMinutes === undefined ? {} : { offsetMinutes });
const many = (n: number, make: (i: number) => Screening): Screening[] =>
  Array.from({ length: n }, (_, i) => make(i));
const tie3 = (i: number) => BigInt(Math.floor(i / 3));

export const SHAPES: Record<string, () => Screening[]> = {
  'all at one instant': () => many(130, (i) => s(1000 - i, '2026-03-01T08:00:00Z')),
  'all at one instant 1200': () => many(1200, (i) => s(1000 + i * 3, '2026-03-01T08:00:00.123456Z')),
  three: () => many(3, (i) => s(i + 1, '2026-03-01T08:00:00Z')),
  'two at one instant': () => many(2, (i) => s(i + 1, '2026-03-01T08:00:00Z')),
  'max ids': () =>
    many(130, (i) => s(2n ** 63n - 1n - BigInt(i), at('2026-03-01T08:00:00Z', tie3(i) * 1_000_001n))),
  'id zero': () => many(130, (i) => s(i, at('2026-03-01T08:00:00Z', tie3(i) * 1_000_001n))),
  'negative ids': () => many(130, (i) => s(i - 60, at('2026-03-01T08:00:00Z', tie3(i) * 1_000_001n))),
  'ids beyond 2^64': () =>
    many(130, (i) => s(2n ** 64n + BigInt(i), at('2026-03-01T08:00:00Z', tie3(i) * 1_000_001n))),
  'before 1970': () => many(130, (i) => s(i + 1, at('1969-12-31T23:59:50.5Z', tie3(i) * -700_001n))),
  'around 1970': () => many(130, (i) => s(i + 1, at('1969-12-31T23:59:50.5Z', tie3(i) * 700_001n))),
  'year 1': () => many(130, (i) => s(i + 1, at('0001-01-01T00:00:00Z', tie3(i) * 700_001n))),
  'year 1 and offset': () =>
    many(130, (i) => s(i + 1, at('0001-01-02T00:00:00Z', tie3(i) * 3_600_000_001n, 6, 600))),
  'after 2100': () => many(130, (i) => s(i + 1, at('2150-06-01T00:00:00Z', tie3(i) * 700_001n))),
  'the last second': () => many(130, (i) => s(i + 1, at('9999-12-31T23:59:59Z', tie3(i) * 10_001n))),
  'the last microsecond': () =>
    many(130, (i) =>
      s(i + 1, i < 100 ? at('2020-01-01T00:00:00Z', tie3(i) * 10_000_001n) : '9999-12-31T23:59:59.999999Z'),
    ),
  'sparse years': () => many(130, (i) => s(i + 1, `${1900 + Math.floor(i / 2)}-06-01T00:00:00Z`)),
  'sparse centuries': () =>
    many(80, (i) => s(i + 1, `${String(1 + Math.floor(i / 2) * 240).padStart(4, '0')}-06-01T00:00:00Z`)),
  nanoseconds: () => many(300, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i), 9))),
  picoseconds: () => many(300, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i), 12))),
  'twenty digits': () => many(300, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i), 20))),
  'whole seconds': () => many(300, (i) => s(1000 - i, at('2026-03-01T08:00:00Z', tie3(i), 0))),
  'whole days': () => many(300, (i) => s(1000 - i, at('2020-03-01T00:00:00Z', tie3(i) * 86_400n, 0))),
  'offset +14': () => many(300, (i) => s(1000 - i, at('2020-03-01T00:00:00Z', tie3(i) * 86_400n, 0, 840))),
  'offset -00:00': () =>
    many(300, (i) => s(1000 - i, at('2020-03-01T00:00:00Z', tie3(i) * 86_400n, 0).replace('Z', '-00:00'))),
  'offset +23:59': () =>
    many(300, (i) => s(1000 - i, at('2020-03-01T00:00:00Z', tie3(i) * 86_400n, 0, 1439))),
  'lower case': () =>
    many(300, (i) => s(1000 - i, at('2020-03-01T00:00:00Z', tie3(i) * 86_401n, 0).toLowerCase())),
  'milliseconds live now': () =>
    many(300, (i) => s(1000 - i, at(new Date().toISOString(), tie3(i) * -1000n, 3))),
  'today and future': () =>
    many(300, (i) => s(1000 - i, at(new Date().toISOString(), (tie3(i) - 50n) * 3600n, 0))),
  'two clusters': () =>
    many(300, (i) => s(i + 1, at(i < 150 ? '2001-01-01T00:00:00Z' : '2031-01-01T00:00:00Z', tie3(i)))),
  'leap second': () => [
    ...many(130, (i) => s(i + 1, at('2016-12-31T23:59:50Z', tie3(i) * 10_001n))),
    s(900, '2016-12-31T23:59:59.999999Z'),
    s(901, '2017-01-01T00:00:00Z'),
  ],
  'exactly 100': () => many(100, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i)))),
  'exactly 101': () => many(101, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i)))),
  'exactly 1000': () => many(1000, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i)))),
  'exactly 1001': () => many(1001, (i) => s(i + 1, at('2026-03-01T08:00:00Z', tie3(i)))),
  'only one tie at the end': () =>
    many(300, (i) => s(i + 1, at('2026-03-01T08:00:00Z', i < 298 ? BigInt(i) : 298n))),
  'ties of thousand': () =>
    many(4000, (i) => s(i + 1, at('2026-03-01T08:00:00Z', BigInt(Math.floor(i / 1100)), 0))),
  'big numbers and null members': () =>
    many(300, (i) =>
      s(
        i + 1,
        at('2026-03-01T08:00:00Z', tie3(i)),
        `,"a":1e999,"b":null,"c":-0,"d":0.10,"":1,"__proto__":{"x":1}`,
      ),
    ),
};
const only = process.env['ZZ'] ? new RegExp(process.env['ZZ']) : /./;
for (const [name, screenings] of Object.entries(SHAPES)) {
  if (!only.test(name)) continue;
  for (const mode of ['bare', 'full'] as const)
    test(`${name}, ${mode}`, async ({ small }) => {
      let list: Screening[];
      try {
        list = screenings();
      } catch (e) {
        appendFileSync('/tmp/zz-shapes.log', name + ': ' + e + '\n');
        return;
      }
      const second = [
        ...generateScreenings({
          tenantId: TENANTS.secondTenant,
          count: 300,
          seed: 2,
          bigIds: true,
          idOffset: 5_000_000n,
        }),
      ];
      const store = createMemoryStore(
        new Map([
          [TENANTS.primary, list],
          [TENANTS.secondTenant, second],
        ]),
      );
      await using server = await startInProcess(small, { store });
      const { dispatcher } = server;
      const t0 = Date.now();
      const {
        events: _,
        window: __,
        dataset: ___,
        secondDataset: ____,
        ...target
      } = await targetFor(server, mode);
      const report = await certify(
        { ...target, ...(mode === 'full' ? { dataset: list, secondDataset: second } : {}) } as never,
        { seed: 1, runs: 4, dispatcher, pollingScale: 0.1 } as never,
      );
      const bad = report.requirements
        .filter(({ status }) => ['fail', 'error'].includes(status))
        .map(({ id, reason, failures }) => `   ${id}: ${reason ?? failures[0]?.message}`);
      const warn = report.requirements
        .filter(({ status }) => status === 'warn')
        .map(({ id, failures }) => `   (warn ${id}: ${failures[0]?.message.slice(0, 300)})`);
      const un = report.requirements
        .filter(({ status, level, class: c }) => status === 'untested' && level === 'MUST' && c === 'core')
        .map(({ id, reason }) => `   (untested ${id}: ${reason})`);
      appendFileSync(
        process.env['ZZLOG'] ?? '/tmp/zz-shapes.log',
        [
          `${name}, ${mode}: ${report.verdict} ${report.requests} requests ${Date.now() - t0} ms`,
          ...bad,
          ...warn,
          ...(report.verdict === 'incomplete' ? [`   ${report.summary}`, ...un.slice(0, 6)] : []),
        ].join('\n') + '\n',
      );
    });
}
