/** The number of virtual users, generator overload, and k6's output with bounded memory and progress lines. */
import { expect, test } from '@playwright/test';
import { Connections, OVERLOAD, overloadOf } from './overload.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import { listen, trackProgress } from './k6-run.ts';
import { EventEmitter } from 'node:events';

const NEEDED = 500;

test('assumes no limit after a single refusal, and drops a limit once more connections are accepted', () => {
  const connections = new Connections();
  connections.accept(20);
  expect(connections.refuse(40)).toBe(40);
  expect(connections.refused).toBe(Infinity);
  connections.accept(40);
  expect([connections.refuse(80), connections.refuse(80)]).toEqual([80, 56]);
  expect(connections.most).toBeLessThan(80);
  connections.accept(80);
  expect([connections.refused, connections.most]).toEqual([Infinity, Infinity]);
});

for (const first of [1, 8, 60, 400]) {
  test(`finds limits of 2 to 120 connections, starting with ${first} virtual users`, () => {
    const wrong: string[] = [];
    for (let limit = 2; limit <= 120; limit += 1) {
      const connections = new Connections();
      let vus: number | 'all' = first;
      let runs = 0;
      while (vus !== 'all' && ++runs < 20) {
        // k6's setup uses one connection.
        const fewer: number | undefined = vus + 1 > limit ? connections.refuse(vus) : undefined;
        if (fewer === undefined) connections.accept(vus);
        vus = fewer ?? connections.more(vus, NEEDED);
      }
      const { accepted, refused } = connections;
      const isFound = accepted <= limit && refused > limit && accepted >= Math.floor(limit / 1.3) - 1;
      if (!isFound || runs === 20) wrong.push(`${limit}: ${accepted} to ${refused} after ${runs} runs`);
    }
    expect(wrong).toEqual([]);
  });
}

const SLO = { p99Ms: 5000, errorRate: 0.001 };
const arrival = (dueMs: number, status: number, latencyMs: number): ArrivalRecord => ({
  kind: 'arrival',
  ...{ dueMs, status, latencyMs, serviceMs: latencyMs, schedulerLagMs: 5 },
});
const samples = Array.from({ length: 26 }, (_, index) =>
  index < 12 ? arrival(index * 115, 200, 3000) : arrival(index * 115, 0, index < 14 ? 10_000 : 13_000),
);
const counts = { pages: 14, dropped_iterations: 12 };
const summary = { seconds: 19, counts, thresholds: {} };
const atRest = (busy: number) => ({ waiting: 0, stolen: 0, throttled: 0, busy });

test('reports a run with dropped requests as void if the machine was busy before it', () => {
  expect(overloadOf({ summary, oneIn: 1 }, samples, SLO, atRest(1))).toMatchObject({ remedy: 'passing' });
  expect(overloadOf({ summary, oneIn: 1 }, samples, SLO, atRest(0.1))).toBeUndefined();
});

test('asks for a higher rate or a longer run if no request was due', () => {
  expect(overloadOf({ oneIn: 1 }, [], SLO, atRest(0))?.reason).toMatch(/raise --rate or --duration/);
});

test('does not ask for VUs because of dropped token requests', () => {
  const quick = Array.from({ length: 100 }, (_, index) => arrival(index * 100, 200, 10));
  const dropped = { ...summary, counts: { pages: 100, dropped_iterations: 12 } };
  expect(overloadOf({ summary: dropped, oneIn: 1 }, quick, SLO, atRest(0.1))).toBeUndefined();
});

/** By tuned constant: a factor with which the run is not void, and latency of the late answers, lag, and the run. */
const VOID: Readonly<
  Record<
    keyof typeof OVERLOAD,
    readonly [0.5 | 2, number, number, Parameters<typeof overloadOf>[0]?, number?]
  >
> = {
  schedulerLagMs: [2, 5200, 100],
  stallEcho: [0.5, 5200, 100],
  cpuShare: [2, 10, 0, { oneIn: 1, cpuShare: 0.9 }],
  busyAtRest: [2, 5200, 0, { oneIn: 1 }, 0.7],
  stolen: [2, 5200, 0, { oneIn: 1, pressure: { ...atRest(1), stolen: 0.08 } }],
  throttled: [2, 5200, 0, { oneIn: 1, pressure: { ...atRest(1), throttled: 0.08 } }],
  waiting: [2, 5200, 0, { oneIn: 1, pressure: { ...atRest(1), waiting: 0.7 } }],
  frozenMs: [0.5, 6500, 0, { oneIn: 1 }, 0.7],
};

for (const [name, [factor, latencyMs, lagMs, run = { oneIn: 1 }, busy = 0]] of Object.entries(VOID))
  test(`overload: a run is void by ${name}, but not by ${factor} times as much`, () => {
    const samples = Array.from({ length: 100 }, (_, index) => ({
      ...arrival(index * 100, 200, index % 25 === 7 ? latencyMs : 10),
      schedulerLagMs: index === 50 ? lagMs : 0,
    }));
    const overload = () => overloadOf(run, samples, SLO, atRest(busy));
    expect(overload()).toMatchObject({ remedy: 'passing' });
    const tuned: Record<string, number> = OVERLOAD;
    tuned[name]! *= factor;
    try {
      expect(overload()).toBeUndefined();
    } finally {
      tuned[name]! /= factor;
    }
  });

test('keeps a fraction of many arrivals, and everything else', () => {
  const lines = new EventEmitter();
  let judged = 0;
  const output = listen(
    lines,
    () => (judged++ === 0 ? [{ id: '4.2-window', message: 'once' }] : []),
    () => {},
    1000,
  );
  for (let index = 0; index < 50_000; index += 1) {
    const status = index % 10 === 0 ? 500 : 200;
    lines.emit('line', JSON.stringify({ kind: 'arrival', dueMs: index, latencyMs: 1, status }));
    if (index % 1000 === 0) lines.emit('line', JSON.stringify({ kind: 'sample', url: '', body: '' }));
  }
  lines.emit('line', '{"kind":"arrival","dueMs":');
  expect(output.records.length).toBeLessThanOrEqual(1000);
  expect(Math.abs(output.records.length * output.oneIn - 50_000)).toBeLessThanOrEqual(output.oneIn);
  const due = output.records.map((one) => (one.kind === 'arrival' ? one.dueMs : NaN));
  expect(due).toEqual(due.map((_, index) => index * output.oneIn));
  expect([judged, output.findings.length, output.lastMessage]).toEqual([50, 1, '{"kind":"arrival","dueMs":']);
});

test('prints at most 60 lines of 80 columns for an hour', () => {
  const told: string[] = [];
  const progress = trackProgress({ seconds: 3600, p99Ms: 500 }, (line) => told.push(line));
  for (let dueMs = 0; dueMs < 3_600_000; dueMs += 100)
    progress({ dueMs, latencyMs: dueMs % 10_000 === 0 ? 600 : 10, status: 200 });
  expect(told.length).toBeLessThanOrEqual(60);
  expect(told.filter((line) => line.length > 80)).toEqual([]);
  expect(told[29]).toMatch(/^  30 min \d s of 1 h 0 min: 1[78],\d{3} answers, 180 late, 0 failed$/);
});

test('stops after 20 s with 90 % failures, but not for a short outage or few answers', () => {
  /** How long after the first failure the run is stopped. */
  const stopMs = (everyMs: number, failsForMs: number): number => {
    const progress = trackProgress({ seconds: 600, p99Ms: 500 }, () => {});
    const moments = Array.from({ length: 600_000 / everyMs }, (_, index) => index * everyMs - 300_000);
    const stopped = moments.find((sinceMs) => {
      const status = sinceMs >= 0 && sinceMs < failsForMs ? 503 : 200;
      return progress({ dueMs: sinceMs + 300_000, latencyMs: 1, status });
    });
    return stopped ?? Infinity;
  };
  expect([stopMs(100, 15_000), stopMs(2000, 300_000)]).toEqual([Infinity, Infinity]);
  expect(stopMs(100, 60_000)).toBeGreaterThanOrEqual(18_000);
  expect(stopMs(100, 60_000)).toBeLessThanOrEqual(41_000);
});
