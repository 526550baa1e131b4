/** A finding that confirmation drops must not take others with the same cause with it. */
import { expect, test } from '@playwright/test';
import type { Exchange } from '../../client/exchange.ts';
import { answerTo, fakeClock, getOf } from '../../testing.ts';
import { Oracle } from '../../data/oracle.ts';
import { confirmFindings } from '../attribution/confirmation.ts';
import type { RunContext } from './context.ts';
import { Knowledge } from './knowledge.ts';
import { Ledger, type NewFinding } from './ledger.ts';

const found = (size: number): NewFinding => ({
  id: '4.2-window',
  cause: 'probe',
  mismatch: { expected: 'all items', received: `${size} items` },
  exchange: { text: 'x'.repeat(size), request: { url: '' } } as NewFinding['exchange'] & object,
});

/** Confirms the findings of a run that sends nothing. */
const confirmIn = (run: Pick<RunContext, 'ledger' | 'knowledge' | 'clock'>): Promise<unknown> =>
  confirmFindings(
    { ...run, target: { clients: {} }, client: {}, pollingMs: (ms: number) => ms } as unknown as RunContext,
    undefined,
  );

test('replaces a dropped finding by a spare with the same cause, the smallest first', () => {
  const ledger = new Ledger();
  for (const size of [7, 5, 9, 6]) ledger.add(found(size));
  const seen: string[] = [];
  for (let next = ledger.unconfirmed[0]; next; next = ledger.unconfirmed[0]) {
    seen.push(next.mismatch.received);
    expect(next.count).toBe(4);
    ledger.settle(next, undefined);
  }
  expect(seen[0]).toBe('5 items');
  expect(seen).toHaveLength(3);
});

test('keeps a confirmed finding, and counts further ones without confirming them again', () => {
  const ledger = new Ledger();
  ledger.add(found(7));
  ledger.settle(ledger.unconfirmed[0]!, ledger.unconfirmed[0]);
  ledger.add(found(5));
  expect(ledger.unconfirmed).toEqual([]);
  expect(ledger.findings.map(({ count, mismatch }) => [count, mismatch.received])).toEqual([[2, '7 items']]);
});

test('confirms a finding that comes during another confirmation once every replica must show what it expects', async () => {
  const [ledger, knowledge, lagMs] = [new Ledger(), new Knowledge(), 5_000];
  knowledge.keepsRawPlus = true;
  let [nowMs, newestMs, sleeps] = [0, 0, 0];
  const waitedMs: number[] = [];
  const walked = (cause: string): void => {
    newestMs = nowMs;
    knowledge.newAtMs.set(tenantId, [...(knowledge.newAtMs.get(tenantId) ?? []), nowMs]);
    const again = async (): Promise<undefined> => void waitedMs.push(nowMs - newestMs);
    const mismatch = { expected: 'each screening', received: 'one less' };
    ledger.add({ id: '4.2-r5-exactly-once', cause, mismatch, again, needsAgain: true });
  };
  const sleep = async (ms: number): Promise<void> => {
    nowMs += ms - 100;
    if (sleeps++ === 0) walked('second');
    nowMs += 100;
  };
  walked('first');
  await confirmIn({ ledger, knowledge, clock: { now: () => nowMs, sleep } });
  expect(waitedMs.slice(2)).toEqual([lagMs, lagMs]);
});

const [tenantId, from, to] = ['t', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'];
const pageOf = (...screenings: readonly (readonly [id: number, hour: number])[]): Exchange => {
  const items = screenings.map(([id, hour]) => {
    const testTime = `2026-01-01T${String(hour).padStart(2, '0')}:00:00Z`;
    return { id, tenantId, testTime };
  });
  const url = `http://127.0.0.1/v1/tenants/${tenantId}/screenings?from=${from}&to=${to}`;
  return answerTo(getOf(url), JSON.stringify({ items, links: {} }));
};

for (const [whose, tenant, confirmed] of [
  ['its own tenant', tenantId, []],
  ['the scratch tenant', 'scratch', ['flaky, 1 of 3']],
] as const)
  test(`a finding that shows once while screenings arrive in ${whose}: ${confirmed[0] ?? 'dropped'}`, async () => {
    const [ledger, knowledge, exchange] = [new Ledger(), new Knowledge(), pageOf()];
    knowledge.newAtMs.set(tenant, [exchange.startedAtMs]);
    const mismatch = { expected: 'each screening', received: 'one less' };
    ledger.add({ id: '4.2-window', cause: 'probe', mismatch, exchange, again: async () => undefined });
    await confirmIn({ ledger, knowledge, clock: fakeClock(() => exchange.startedAtMs) });
    expect(ledger.findings.map((finding) => finding.confirmed)).toEqual(confirmed);
  });

test('waits for replicas after a testTime was corrected, as after an arrival', () => {
  const knowledge = new Knowledge();
  knowledge.set(tenantId, new Oracle(false));
  for (const [index, hour] of [0, 0, 1].entries()) knowledge.remember(pageOf([1, hour]), 1, index);
  expect(knowledge.newAtMs.get(tenantId)).toEqual([0, 2]);
});

test('names the member that changed, and not a tenantId in another case', () => {
  const knowledge = new Knowledge();
  const answerWith = (more: object): Exchange => {
    const items = [{ id: 1, tenantId, testTime: from, ...more }];
    return answerTo(pageOf().request, JSON.stringify({ items, links: {} }));
  };
  knowledge.remember(answerWith({ result: 'a' }));
  const changed = knowledge.changedScreening(answerWith({ tenantId: tenantId.toUpperCase(), result: 'b' }));
  expect(changed?.received).toBe('result: "b"');
});

for (const [what, hours, corrected] of [
  ['any number of testTimes may be corrected', [12, 13], true],
  ['where ids move to the places of others, ten may be corrected', [1, 0], false],
] as const)
  test(what, () => {
    const knowledge = new Knowledge();
    const isCorrected = Array.from({ length: 11 }, (_, index) => {
      const [first, second] = [2 * index, 2 * index + 1];
      knowledge.remember(pageOf([first, 0], [second, 1]));
      const now = pageOf([second, hours[1]], [first, hours[0]]);
      const { item, before } = knowledge.movedId(now)!;
      return knowledge.correct(now, item, before!, now, now);
    });
    expect(isCorrected).toEqual([...Array<boolean>(10).fill(true), corrected]);
  });
