/** One cause, one group; which mistake it behaves like; and nothing said where nothing is known. */
import { expect, test } from '@playwright/test';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped } from '../../reference-server/faults/fault.ts';
import { requirement, type RequirementId } from '../../engine/requirements.ts';
import type { RequirementResult } from '../report.ts';
import { diagnose } from './diagnose.ts';
import { featuresOf } from './features.ts';
import { MISTAKES, mistakeOf } from './mistakes/all.ts';
import type { Signature } from './signature.ts';
import { SIGNATURES } from './signatures.ts';

const failed = (id: RequirementId, message: string, request = ''): RequirementResult => {
  const [, expected, received] = /^expected (.*), got (.*)$/.exec(message) ?? [];
  return {
    ...requirement(id),
    lookAt: [...requirement(id).lookAt],
    status: 'fail',
    checks: 1,
    durationMs: 0,
    failures: [{ message, expected, received, request, response: '', curl: '' }],
  };
};

const CUT =
  'expected next with from=2026-03-01T00:00:00.751823Z, the testTime of the last item, got from=2026-03-01T00:00:00.751Z';
const LOST = 'expected all 30 screenings of the window, got 29 items on 3 pages: item 5 is missing';
const ORDER = 'expected items by testTime ascending, ties by id ascending, got item 5 behind item 6';
const CODE = 'expected 401 unauthenticated, got 401 invalid_token';

const signature = (name: string, own: RequirementId, ...broken: RequirementResult[]): Signature => ({
  name,
  own: [own],
  may: [],
  seen: { full: Object.fromEntries(broken.map(({ id, failures }) => [id, failures.flatMap(featuresOf)])) },
});

const CURSOR = 'from of next printed with milliseconds only';
const KNOWN: readonly Signature[] = [
  signature(CURSOR, '4.2-r6-next-from', failed('4.2-r6-next-from', CUT), failed('4.2-r5-exactly-once', LOST)),
  signature('newest first', '4.2-r4-order', failed('4.2-r4-order', ORDER)),
  signature(
    'a 401 carries another code',
    '7.2-unauthenticated',
    failed('7.2-unauthenticated', CODE),
    failed('5-missing', CODE),
  ),
];

const findings = (...results: readonly RequirementResult[]): string[][] =>
  diagnose(results, KNOWN).map((group) => [...group.findings]);

test('what follows from a root stands under it', () => {
  const results = [failed('4.2-r5-exactly-once', LOST), failed('4.2-r6-next-from', CUT)];
  expect(findings(...results)).toEqual([['4.2-r6-next-from', '4.2-r5-exactly-once']]);
  const [likest] = diagnose(results, KNOWN)[0]!.behavesLike;
  expect(likest).toMatchObject({ name: CURSOR, why: expect.stringContaining('cut to 3 digits') as unknown });
  expect(likest!.likelihood).toBeGreaterThan(0.5);
  expect(likest!.remedy).toContain(mistakeOf(CURSOR)!.fix);
});

test('two causes are two groups', () => {
  const results = [
    failed('4.2-r4-order', ORDER),
    failed('5-missing', CODE),
    failed('7.2-unauthenticated', CODE),
  ];
  expect(findings(...results)).toEqual([['7.2-unauthenticated', '5-missing'], ['4.2-r4-order']]);
});

test('what no known mistake explains stands by itself, and is like none', () => {
  expect(diagnose([failed('2.2-sub', 'expected sub: a non-empty string, got sub: 7')], KNOWN)).toEqual([
    { root: '2.2-sub', findings: ['2.2-sub'], behavesLike: [] },
  ]);
});

test('what one answer breaks is one group', () => {
  const results = [
    failed('2.3-id', 'expected a, got b', 'GET /a'),
    failed('2.4-utf8', 'expected c, got d', 'GET /a'),
  ];
  expect(findings(...results)).toHaveLength(1);
});

const rootOf = (...broken: readonly (readonly [RequirementId, string])[]): string | undefined =>
  diagnose(
    // One answer breaks them all, so that they are one group.
    broken.map(([id, message]) => failed(id, message, 'GET /a')),
    [],
  )[0]?.root;

test('the root is what follows from no other by its nature', () => {
  const late = 'expected no item at or after 2026-03-01T00:00:00Z, got item 5 at 2026-03-01T00:00:00Z';
  const held = 'expected no items and no next, got 2 items';
  expect(rootOf(['4.2-r1-zero-width', held], ['4.2-to-exclusive', late])).toBe('4.2-to-exclusive');
  const served = 'expected 401 unauthenticated, got 200 {"items":[],"links":{}}';
  expect(rootOf(['5-tampered', served], ['5-garbage', served], ['5-missing', served])).toBe('5-missing');
  const lost = 'expected item 5 at 2026-03-01T00:00:00.5Z, got 0 items without it';
  expect(rootOf(['4.2-fractions', lost], ['4.2-from-inclusive', lost])).toBe('4.2-from-inclusive');
});

test('what refused requests have in common is the root, and several things in common are none', () => {
  const refused = 'expected 200, got 404 {"code":"not_found"}';
  expect(rootOf(['4.2-success', refused], ['4.2-r1-zero-width', refused])).toBe('4.2-r1-zero-width');
  const several = ['4.2-r1-zero-width', '4.2-fractions', '4.2-success'] as const;
  expect(rootOf(...several.map((id) => [id, refused] as const))).toBe('4.2-success');
});

test('one refusal wherever it comes is one group, under the requirement named for its code', () => {
  const other = 'expected 401 unauthenticated, got 401 {"code":"unauthorized"}';
  const results = (['5-garbage', '5-missing', '5-forged', '7.2-unauthenticated'] as const).map((id) =>
    failed(id, other),
  );
  const [group, ...more] = diagnose(results).map((one) => [...one.findings]);
  expect(more).toEqual([]);
  expect(group?.[0]).toBe('7.2-unauthenticated');
  expect(group).toHaveLength(4);
});

test('nothing broken, nothing said; a recommendation that is not followed is no failure', () => {
  const warned: RequirementResult = { ...failed('4.2-r4-order', ORDER), status: 'warn' };
  expect(diagnose([warned], KNOWN)).toEqual([]);
  expect(diagnose([{ ...failed('2.2-sub', ''), status: 'pass', failures: [] }], KNOWN)).toEqual([]);
});

test('every fault is of one kind of mistake, and no kind names another', () => {
  const named = MISTAKES.flatMap(({ faults }) => faults);
  expect([...named].sort()).toEqual(FAULTS.map(({ name }) => name).sort());
});

test('the signatures are those of the faults', () => {
  const table = SIGNATURES.map(({ name, own, may }) => ({ name, own, may }));
  const faults = FAULTS.map((fault) => ({ name: fault.name, own: tripped(fault), may: fault.mayTrip ?? [] }));
  expect(table, 'npx tsx certify/proof/signature-table.ts').toEqual(faults);
});
