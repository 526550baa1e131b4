/** A walk that is held against every rule, compared with one that only reads the same pages, ids exact. */
import { parse } from 'lossless-json';
import { request, type Dispatcher } from 'undici';
import { kitOptions } from '../../certify/certify.ts';
import { pageUrl, type PageQuery } from '../../engine/client/page.ts';
import { Kit } from '../../engine/run/kit.ts';
import { walk } from '../../engine/run/walk/walk.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { median } from '../estimate/numbers.ts';
import { mint } from '../run/ask.ts';
import { startReference } from '../run/reference.ts';
import { rowOf, type Row } from './pages.ts';

const SCREENINGS = 100_000;
const ALL: PageQuery = { from: '1970-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', pageSize: 1000 };
const ROUNDS = 5;
const GOAL = 2;

export async function walkRow(tell: (line: string) => void): Promise<Row> {
  await using running = await startReference(SCREENINGS, [], tell);
  const { baseUrl, authUrl, clients } = running.target as unknown as Target;
  const target = await resolveTarget({ baseUrl, authUrl, clients: { primary: clients.primary } });
  const taken: Record<'checked' | 'read', number[]> = { checked: [], read: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    taken.read.push(await secondsOf(() => readAll(target)));
    taken.checked.push(await secondsOf(() => checkAll(target)));
  }
  const [checked, read] = [median(taken.checked), median(taken.read)];
  const detail = { screenings: SCREENINGS, pageSize: 1000, rounds: ROUNDS, checked, read };
  const name = 'a checked walk against one that only reads';
  return rowOf(name, checked / read, GOAL, detail, (ratio) => ratio <= GOAL);
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

async function readAll(target: Target): Promise<void> {
  const { clientId, clientSecret } = target.clients.primary;
  const headers = { authorization: `Bearer ${await mint(target, clientId, clientSecret)}` };
  let url: string | undefined = pageUrl(target.baseUrl, TENANTS.primary, ALL);
  while (url !== undefined) {
    const { body }: Dispatcher.ResponseData = await request(url, { headers });
    url = (parse(await body.text()) as { links: { next?: string } }).links.next;
  }
}

async function checkAll(target: Target): Promise<void> {
  await using kit = new Kit(target, kitOptions({ seed: 1 }));
  const { end, course } = await walk(kit, ALL);
  if (end !== 'complete' || course.count !== SCREENINGS)
    throw new Error(`the walk is ${end} at ${course.count}`);
}
