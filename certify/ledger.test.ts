/** The catalogue is a ledger: no requirement without a probe and a fault, no probe and no fault for no requirement. */
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { REQUIREMENTS, type RequirementId } from '../fixtures/requirements.ts';
import { FAULTS } from '../reference-server/faults/all.ts';
import { tripped } from '../reference-server/faults/fault.ts';
import { table, TABLE } from '../reference-server/faults/table.ts';
import { WITHOUT_FAULT } from '../reference-server/faults/without.ts';
import { PROBES } from '../specs/probes.ts';

const ids = new Set<string>(REQUIREMENTS.map(({ id }) => id));
const faulted = new Set<string>(FAULTS.flatMap(tripped));
const probed = new Set<string>(PROBES.flatMap((probe) => probe.ids));

test('every requirement has a probe', () => {
  expect([...ids].filter((id) => !probed.has(id))).toEqual([]);
});

test('every requirement has a fault, or a reason why not', () => {
  expect([...ids].filter((id) => !faulted.has(id) && !WITHOUT_FAULT[id as RequirementId])).toEqual([]);
});

test('no reason for a requirement that has a fault', () => {
  expect(Object.keys(WITHOUT_FAULT).filter((id) => faulted.has(id))).toEqual([]);
});

test('no probe and no fault for a requirement that does not exist', () => {
  const blamed = FAULTS.flatMap((fault) => [...tripped(fault), ...(fault.mayTrip ?? [])]);
  expect([...probed, ...blamed].filter((id) => !ids.has(id))).toEqual([]);
});

test('every fault trips something, and has a name of its own', () => {
  expect(FAULTS.filter((fault) => tripped(fault).length === 0)).toEqual([]);
  const names = FAULTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test('the table of faults is up to date', async () => {
  expect(await readFile(TABLE, 'utf8')).toBe(await table());
});
