/** One cause, one group; and nothing said where nothing is known. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { requirement, type RequirementId } from '../../fixtures/requirements.ts';
import { signatureTable, SIGNATURE_FILE } from '../proof/signature-table.ts';
import type { RequirementResult } from '../report.ts';
import { diagnose } from './diagnose.ts';
import type { Signature } from './signature.ts';

const failed = (id: RequirementId, message: string, request = ''): RequirementResult => ({
  ...requirement(id),
  lookAt: [...requirement(id).lookAt],
  status: 'fail',
  checks: 1,
  durationMs: 0,
  failures: [{ message, request, response: '', curl: '' }],
});

const SIGNATURES: readonly Signature[] = [
  {
    name: 'the cursor keeps milliseconds',
    own: { '4.2-r6-next-from': 'next with from' },
    may: ['4.2-r5-exactly-once', '4.2-window'],
  },
  { name: 'newest first', own: { '4.2-r4-order': 'ascending' }, may: ['4.2-r5-exactly-once'] },
  { name: 'a wrong code', own: { '7.2-unauthenticated': 'unauthenticated' }, may: ['5-missing', '5-scheme'] },
];

const roots = (results: readonly RequirementResult[]): string[][] =>
  diagnose(results, SIGNATURES).map(({ findings }) => [...findings]);

test('what follows from a root stands under it', () => {
  const results = [
    failed('4.2-r5-exactly-once', 'item 5 is missing'),
    failed('4.2-r6-next-from', 'expected next with from=…, got …'),
  ];
  expect(roots(results)).toEqual([['4.2-r6-next-from', '4.2-r5-exactly-once']]);
  const [{ behavesLike }] = diagnose(results, SIGNATURES) as [ReturnType<typeof diagnose>[number]];
  expect(behavesLike[0]).toMatchObject({ name: 'the cursor keeps milliseconds' });
});

test('two causes are two groups', () => {
  const results = [
    failed('4.2-r4-order', 'expected items by testTime ascending'),
    failed('5-missing', 'expected 401 unauthenticated'),
    failed('7.2-unauthenticated', 'expected 401 unauthenticated'),
  ];
  expect(roots(results)).toEqual([['7.2-unauthenticated', '5-missing'], ['4.2-r4-order']]);
});

test('what no known mistake explains stands by itself, or with what the same request broke', () => {
  expect(diagnose([failed('2.2-sub', 'expected sub')], SIGNATURES)).toMatchObject([
    { root: '2.2-sub', findings: ['2.2-sub'], behavesLike: [] },
  ]);
  const same = [failed('4.2-r4-order', 'ascending', 'GET /a'), failed('2.3-id', 'expected id', 'GET /a')];
  expect(roots(same)).toEqual([['4.2-r4-order', '2.3-id']]);
});

test('nothing broken, nothing said', () => {
  expect(diagnose([{ ...failed('2.2-sub', ''), status: 'pass', failures: [] }])).toEqual([]);
});

test('the signatures are those of the faults', async () => {
  expect(await readFile(SIGNATURE_FILE, 'utf8')).toBe(signatureTable());
});
