/** The catalogue: each requirement is listed, explained, tested, and violated by a fault. */
import { expect } from '@playwright/test';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import { PROPERTIES } from '../../properties/all.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped } from '../../reference-server/faults/fault.ts';
import { SPECS } from '../../specs/all.ts';
import { MISTAKES } from '../diagnosis/mistakes/all.ts';
import { explain, list } from './explain.ts';
import { test } from '../../reference-server/testing.ts';

test('no two tests have the same title', () => {
  const titles = [...SPECS, ...PROPERTIES].map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
});

test('--list prints one line for every requirement, or for the selected ones', () => {
  expect(list(['9-prefix'])).toMatch(/^9 Versioning\n {2}9-prefix .*\n$/);
  const lines = list().split('\n');
  for (const { id, level, title } of REQUIREMENTS)
    expect(
      lines.filter(
        (line) => line.trim().startsWith(`${id} `) && line.includes(level) && line.endsWith(title),
      ),
    ).toHaveLength(1);
});

test('--explain lists the tests of every requirement, within the given width', () => {
  const texts = REQUIREMENTS.map(({ id, title }) => [title, explain(id, 60)] as const);
  // A call of expect for each of these lines would take longer than all else.
  const tooLong = texts.flatMap(([, text]) =>
    text.split('\n').filter((line) => line.length > 60 && line.trim().includes(' ')),
  );
  expect(tooLong).toEqual([]);
  for (const [title, text] of texts) {
    expect(text.replace(/\s+/g, ' ')).toContain(title);
    expect(text).toMatch(/^ {2}tried by {2}\S/m);
  }
  expect(() => explain('4.2-windw')).toThrow('did you mean "4.2-window"?');
  expect(() => explain('4.2')).toThrow(
    'no requirement and no known mistake "4.2"; --list prints the requirements',
  );
});

test('--explain describes every known kind of mistake', () => {
  for (const { name, why, fix } of MISTAKES) {
    const text = explain(name, 80).replace(/\s+/g, ' ');
    for (const part of [name, why, fix]) expect(text).toContain(part.replace(/\s+/g, ' '));
  }
});

const ids = new Set<string>(REQUIREMENTS.map(({ id }) => id));
const faulted = new Set<string>(FAULTS.flatMap(tripped));
const tested = new Set<string>(SPECS.flatMap((check) => check.ids));

test('every requirement has a test', () => {
  expect([...ids].filter((id) => !tested.has(id))).toEqual([]);
});

test('every requirement has a fault', () => {
  expect([...ids].filter((id) => !faulted.has(id))).toEqual([]);
});

test('every test and fault names requirements that exist', () => {
  const named = FAULTS.flatMap((fault) => [...tripped(fault), ...(fault.mayTrip ?? [])]);
  expect([...tested, ...named].filter((id) => !ids.has(id))).toEqual([]);
});

test('every fault trips a requirement and has a unique name', () => {
  expect(FAULTS.filter((fault) => tripped(fault).length === 0)).toEqual([]);
  const names = FAULTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
