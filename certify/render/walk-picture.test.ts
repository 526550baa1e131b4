/** The picture of a broken walk: its marks and its lines. */
import { expect, test } from '@playwright/test';
import type { Exchange } from '../../engine/client/exchange.ts';
import { answerTo, getOf } from '../../engine/client/exchange.testing.ts';
import { instant } from '../../engine/data/instant.ts';
import { pictureOfWalk } from '../../engine/checks/walk-picture.ts';
import { walkLines } from './pictures.ts';

const BASE = 'http://127.0.0.1/v1/tenants/7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01/screenings';
const at = (id: number): string => `2026-03-01T00:00:${String(Math.floor(id / 10)).padStart(2, '0')}Z`;

/** Pages with these ids; ids of the same decade tie. */
const walked = (...pages: readonly (readonly number[])[]): Exchange[] =>
  pages.map((ids, index) => {
    const last = ids.at(-1) ?? 0;
    const next = index + 1 < pages.length ? { next: `${BASE}?from=${at(last)}&from_id=${last}` } : {};
    const items = ids.map((id) => ({ id, tenantId: 't', testTime: at(id) }));
    return answerTo(getOf(BASE), JSON.stringify({ items, links: next }));
  });

const known = (...ids: readonly number[]) =>
  ids.map((id) => ({ id: BigInt(id), testTime: at(id), at: instant(at(id)), firstSeen: 0 }));

test('a walk without a break has no picture', () => {
  expect(pictureOfWalk(walked([10, 11], [12, 20]), known(10, 11, 12, 20))).toBeUndefined();
});

test('marks a repeated item on both pages', () => {
  const picture = pictureOfWalk(walked([1, 2, 3, 4, 5, 10, 11], [11, 12], [13]))!;
  expect(picture.pages.map(({ page, before }) => [page, before])).toEqual([
    [1, 3],
    [2, 0],
  ]);
  expect(picture.pages.map(({ items }) => items.filter(({ mark }) => mark).map(({ id }) => id))).toEqual([
    ['11'],
    ['11'],
  ]);
  expect(picture.cursor).toBe(`from=${at(11)} from_id=11`);
  expect(walkLines(picture).slice(-4)).toEqual([
    `→ from=${at(11)} from_id=11`,
    'page 2',
    `✗ 11 at ${at(11)} comes again`,
    `· 12 at ${at(12)}`,
  ]);
});

test('draws a lost item between the pages or within its page', () => {
  const between = pictureOfWalk(walked([10, 11], [20, 21]), known(10, 11, 12, 20, 21))!;
  expect(between.between).toEqual([{ id: '12', testTime: at(12), mark: 'missing' }]);
  expect(between.pages.map(({ page }) => page)).toEqual([1, 2]);
  const within = pictureOfWalk(walked([10, 12], [20]), known(10, 11, 12, 20))!;
  expect(within.pages).toHaveLength(1);
  expect(within.pages[0]!.items.map(({ id, mark }) => `${id} ${mark ?? ''}`)).toEqual([
    '10 ',
    '11 missing',
    '12 ',
  ]);
  expect(pictureOfWalk(walked([]), known(1))!.pages[0]!.items).toHaveLength(1);
});

test('marks an item out of order', () => {
  const picture = pictureOfWalk(walked([10, 20], [15, 30]))!;
  expect(picture.pages[1]!.items[0]).toMatchObject({ id: '15', mark: 'misplaced' });
});
