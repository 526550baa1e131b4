/** `npm run bench -- certify`: how long a certificate takes, and where the time goes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PROPERTIES } from '../../properties/all.ts';
import { certify } from '../../certify/certify.ts';
import { startReference } from '../../certify/reference.ts';
import { resolveTarget } from '../../engine/target/target.ts';
import { rowOf, type Row } from './pages.ts';
import { walkRow } from './walk.ts';

/** Seconds on two idle processors, start and database included; and of a target that is so far away. */
const GOAL = 12;
const FAR_MS = 40;
const GOAL_FAR = 45;

const PHASES = ['start', 'survey', 'checks', 'laws', 'end', 'waiting'] as const;
type Phase = (typeof PHASES)[number];

/** The certificate of the reference server, once as `npm run certify` has it, once with every answer that late; a walk. */
export async function certificateRows(tell: (line: string) => void): Promise<Row[]> {
  return [
    await row('certificate, of 12 s', GOAL, 0, tell),
    await row(`certificate ${FAR_MS} ms away, of 45 s`, GOAL_FAR, FAR_MS, tell),
    await walkRow(tell),
  ];
}

async function row(name: string, goal: number, delayMs: number, tell: (line: string) => void): Promise<Row> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-bench-'));
  const began = performance.now();
  try {
    await using server = await startReference(
      directory,
      delayMs > 0
        ? { wrapHandler: (handler) => async (request) => (await sleep(delayMs), handler(request)) }
        : {},
    );
    const target = await resolveTarget(server.target(), { directory });
    const spent: Record<Phase, number> = { start: 0, survey: 0, checks: 0, laws: 0, end: 0, waiting: 0 };
    let phase: Phase = 'start';
    let since = began;
    const enter = (next: Phase): void => {
      const now = performance.now();
      spent[phase] += (now - since) / 1000;
      [phase, since] = [next, now];
    };
    const { requests, verdict } = await certify(target, {
      seed: 1,
      onProgress: ({ done, check, waitedMs }) => {
        enter(!check ? 'end' : done === 0 ? 'survey' : PROPERTIES.includes(check) ? 'laws' : 'checks');
        spent.waiting = waitedMs() / 1000;
      },
    });
    enter('end');
    const seconds = (performance.now() - began) / 1000;
    tell(`${name}: ${verdict}, ${requests} requests in ${seconds.toFixed(1)} s`);
    for (const part of PHASES) tell(`  ${part.padEnd(8)} ${spent[part].toFixed(1).padStart(5)} s`);
    return rowOf(name, seconds / goal, 1, { seconds, requests, ...spent }, (ratio) => ratio <= 1);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
