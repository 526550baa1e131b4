/** `npm run bench -- certify`: the duration of a certification run and of its phases, and the cost of a traversal. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PROPERTIES } from '../../properties/all.ts';
import { certify, kitOptions } from '../../certify/certify.ts';
import { startForCertificate } from '../../certify/reference.ts';
import { loadTarget, resolveTarget, type Target } from '../../engine/target/target.ts';
import { measureMedians, type Row, rowOf } from './service.ts';
import { parse } from 'lossless-json';
import { Agent, type Dispatcher, request } from 'undici';
import { type PageQuery, pageUrl } from '../../engine/client/page.ts';
import { Kit } from '../../engine/run/kit.ts';
import { walk } from '../../engine/run/walk/walk.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { mint } from '../run/target.ts';
import { startReference } from '../../reference-server/command/child.ts';

/** Seconds on two idle processors, including the start of server and database. */
const GOAL = 12;
/** Added latency of each answer, and the goal with it. */
const FAR_MS = 40;
const GOAL_FAR = 45;

const PHASES = ['start', 'survey', 'checks', 'laws', 'end', 'waiting'] as const;
type Phase = (typeof PHASES)[number];

/** Certifies the reference server without and with added latency, and measures a checked traversal. */
export async function certificateRows(tell: (line: string) => void): Promise<Row[]> {
  return [
    await row('certificate, of 12 s', GOAL, 0, tell),
    await row(`certificate ${FAR_MS} ms away, of 45 s`, GOAL_FAR, FAR_MS, tell),
    await walkRow(tell),
  ];
}

async function row(name: string, goal: number, delayMs: number, tell: (line: string) => void): Promise<Row> {
  const began = performance.now();
  await using server = await startForCertificate();
  const target = await loadTarget(server.file);
  const agent = new Agent();
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
    ...(delayMs > 0
      ? { dispatcher: { request: async (options) => (await sleep(delayMs), agent.request(options)) } }
      : {}),
    onProgress: ({ done, check, waitedMs }) => {
      enter(!check ? 'end' : done === 0 ? 'survey' : PROPERTIES.includes(check) ? 'laws' : 'checks');
      spent.waiting = waitedMs() / 1000;
    },
  });
  enter('end');
  await agent.close();
  const seconds = (performance.now() - began) / 1000;
  tell(`${name}: ${verdict}, ${requests} requests in ${seconds.toFixed(1)} s`);
  for (const part of PHASES) tell(`  ${part.padEnd(8)} ${spent[part].toFixed(1).padStart(5)} s`);
  return rowOf(name, seconds / goal, 1, { seconds, requests, ...spent }, (ratio) => ratio <= 1);
}

const SCREENINGS = 100_000;
const ALL: PageQuery = { from: '1970-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', pageSize: 1000 };
const ROUNDS = 5;
const GOAL_WALK = 2;

async function walkRow(tell: (line: string) => void): Promise<Row> {
  await using running = await startReference(['--screenings', String(SCREENINGS)], { tell });
  const { baseUrl, authUrl, clients } = running.target as unknown as Target;
  const target = await resolveTarget({ baseUrl, authUrl, clients: { primary: clients.primary } });
  const kinds = { read: () => secondsOf(readAll(target)), checked: () => secondsOf(checkAll(target)) };
  const seconds = await measureMedians(kinds, { rounds: ROUNDS, tell });
  const [checked, read] = [seconds('checked'), seconds('read')];
  const detail = { screenings: SCREENINGS, pageSize: 1000, rounds: ROUNDS, checked, read };
  const name = 'a checked walk against one that only reads';
  return rowOf(name, checked / read, GOAL_WALK, detail, (ratio) => ratio <= GOAL_WALK);
}

async function secondsOf(work: Promise<void>): Promise<number> {
  const began = performance.now();
  await work;
  return (performance.now() - began) / 1000;
}

async function readAll(target: Target): Promise<void> {
  const headers = { authorization: `Bearer ${await mint(target)}` };
  let url: string | undefined = pageUrl(target.baseUrl, TENANTS.primary, ALL);
  while (url !== undefined) {
    const { body }: Dispatcher.ResponseData = await request(url, { headers });
    url = (parse(await body.text()) as { links: { next?: string } }).links.next;
  }
}

async function checkAll(target: Target): Promise<void> {
  await using kit = new Kit(target, kitOptions({ seed: 1 }));
  const { end, summary } = await walk(kit, ALL);
  if (end !== 'complete' || summary.count !== SCREENINGS)
    throw new Error(`the walk is ${end} at ${summary.count}`);
}
