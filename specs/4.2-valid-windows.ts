/** Section 4.2: which windows are valid, and which are refused. */
import { pageOf } from '../fixtures/client/page.ts';
import { sayRefusal } from '../fixtures/checks/errors.ts';
import { differs, type Judge } from '../fixtures/checks/mismatch.ts';
import { refusedWith } from '../fixtures/checks/refusal.ts';
import { formatInstant, instant, shift } from '../fixtures/data/instant.ts';
import { withWindow } from '../fixtures/run/circumstances.ts';
import { refusal, refusals, ruleProbes, type Rule } from '../fixtures/run/everywhere.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { checkRefusals, encoded, rawQuery, SOME_WINDOW } from '../fixtures/run/raw-request.ts';
import { sampleDataOf, variedItems } from '../fixtures/run/survey.ts';

const REQUIRED = (['from', 'to'] as const).map((name): Rule => ({
  id: `4.2-${name}-required`,
  name: `no ${name}`,
  topic: `missing-${name}-code`,
  ways: refusals([refusal({ [name]: undefined }, 'invalid_request', 'invalid_time_range')]),
}));

const isEmpty: Judge = (exchange) => {
  if (exchange.status !== 200) return differs('200 without items', sayRefusal(exchange));
  const { items, next } = pageOf(exchange);
  return items?.length === 0 && next === undefined
    ? undefined
    : differs(
        'no items and no next',
        `${items?.length ?? 'no'} items${next === undefined ? '' : ' and next'}`,
      );
};

const ZERO_WIDTH: Rule = {
  id: '4.2-r1-zero-width',
  name: 'windows of no width',
  precondition: 'data',
  inPlaceOf: 'window',
  ways: async (kit) => {
    const sample = await sampleDataOf(kit);
    const items = [...new Set([...sample.densestSlice.slice(0, 3), ...variedItems(sample, 6)])];
    return [...items.map(({ at }) => formatInstant(at)), SOME_WINDOW.from, '2099-01-01T00:00:00Z'].map(
      (at) => ({ alter: (request) => withWindow(request, at, at), judge: isEmpty }),
    );
  },
};

const INVERTED: Rule = {
  id: '4.2-r2-inverted',
  name: 'to earlier than from',
  inPlaceOf: 'window',
  ways: (kit) => {
    const { from, to } = SOME_WINDOW;
    const windows: readonly (readonly [string, string])[] = [
      [to, from],
      [formatInstant(shift(instant(from), 1n, 0)), from],
      [formatInstant(shift(instant(from), 1n)), from],
      ['2100-01-01T00:00:00Z', '1970-01-01T00:00:00Z'],
      ['2099-01-01T00:00:00Z', '2098-12-31T23:59:59.999999Z'],
    ];
    return windows.map(([later, earlier]) => ({
      alter: (request) => withWindow(request, later, earlier),
      judge: refusedWith(kit.target.errorCodePointer, 'invalid_time_range'),
    }));
  },
};

export const probes: readonly Probe[] = [
  ...REQUIRED.flatMap(ruleProbes),
  ...ruleProbes(ZERO_WIDTH),
  {
    ids: ['4.2-r1-zero-width'],
    name: 'an instant and itself, in two offsets',
    precondition: 'data',
    run: async (kit) => {
      const [item] = variedItems(await sampleDataOf(kit), 1);
      const [at, elsewhere] = [formatInstant(item!.at), formatInstant(item!.at, { offsetMinutes: 330 })];
      for (const [from, to] of [
        [at, elsewhere],
        [elsewhere, at],
      ] as const) {
        kit.check('4.2-r1-zero-width', await kit.ask({ from, to }, { id: '4.2-r1-zero-width' }), isEmpty);
      }
    },
  },
  ...ruleProbes(INVERTED),
  {
    ids: ['4.2-r2-inverted'],
    name: 'to earlier than from as an instant, not as text, and the other way about',
    precondition: 'page',
    run: (kit) =>
      checkRefusals(
        kit,
        '4.2-r2-inverted',
        [
          ['2026-03-01T06:00:00Z', '2026-03-01T10:00:00+05:00'],
          ['2026-03-01T00:30:00-01:00', '2026-03-01T01:00:00Z'],
        ].map(([from, to]) => ({
          query: rawQuery(encoded({ from: from!, to: to! })),
          codes: ['invalid_time_range'],
        })),
      ),
  },
];
