/**
 * `npm run bench`: what pages of the reference server cost on a million screenings, as ratios, which mean the same
 * on any machine. Writes bench.json; exits 0 where every goal is reached, 1 where not.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { resolveTarget } from '../fixtures/target/target.ts';
import { median } from './estimate/depth.ts';
import { mint, prepare } from './run/prepare.ts';
import { startReference } from './run/reference.ts';
import { textTable } from './scenarios/words.ts';

interface Row {
  readonly name: string;
  readonly ratio: number;
  readonly goal: number;
  readonly reached: boolean;
  readonly detail: Readonly<Record<string, number>>;
}

/** A page that is asked for again and again. */
interface Place {
  readonly name: string;
  readonly url: string;
}

const PAGE_SIZE = 500;
const ROUNDS = 80;
const GOAL = 1.5;
const TIMEOUT_MS = 30_000;

const flags = new Command('bench')
  .description('What pages of the reference server cost, as ratios.')
  .option('--screenings <n>', 'in the reference server', Number, 1_000_000)
  .option('--report-dir <dir>', 'where bench.json goes', 'reports')
  .parse()
  .opts<{ screenings: number; reportDir: string }>();

const tell = (line: string): void => console.error(line);

tell(`the reference server is started with ${flags.screenings} screenings`);
const startedAt = Date.now();
await using running = await startReference(flags.screenings, [], tell);
const loadSeconds = (Date.now() - startedAt) / 1000;
const { dataset: _, secondDataset: __, events: ___, ...rest } = running.target;
const target = await resolveTarget(rest);
const { base } = await prepare(target);
const { clientId, clientSecret } = target.clients.primary;
const token = await mint(target, clientId, clientSecret);

/** Asks for a page: how long it took, how many items it held, where it leads. */
async function ask(url: string): Promise<{ ms: number; items: number; next?: string }> {
  const sentAt = performance.now();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  const ms = performance.now() - sentAt;
  if (response.status !== 200) throw new Error(`the reference server answers ${response.status}`);
  const page = JSON.parse(text) as { items: unknown[]; links: { next?: string } };
  return { ms, items: page.items.length, ...(page.links.next ? { next: page.links.next } : {}) };
}

const first = (from: string, to: string, pageSize = PAGE_SIZE): string =>
  `${base.baseUrl}/v1/tenants/${base.clients[0]!.tenantId}/screenings?${new URLSearchParams({ from, to, pageSize: String(pageSize) })}`;

// One walk to the end finds the addresses of the deep pages.
const { from, to } = base.window;
const walkStartedAt = Date.now();
const walk: string[] = [first(from, to)];
let items = 0;
for (let at = walk[0]; at;) {
  const page = await ask(at);
  items += page.items;
  if (page.next) walk.push(page.next);
  at = page.next;
}
const walkSeconds = (Date.now() - walkStartedAt) / 1000;
tell(`${walk.length} pages, ${items} screenings, ${(items / walkSeconds).toFixed(0)} a second`);

// A window that one page fills, in the middle: its end is where the page after it begins.
const middle = Math.floor(walk.length / 2);
const startOf = (place: number): string => new URL(walk[place]!).searchParams.get('from')!;
const short = first(startOf(middle), startOf(Math.min(walk.length - 1, middle + 2)));
const places: Place[] = [
  { name: 'first', url: walk[0]! },
  { name: 'half', url: walk[middle]! },
  // The last page may hold few items: the one before it is full.
  { name: 'deep', url: walk[Math.max(0, walk.length - 2)]! },
  { name: 'short', url: short },
  { name: 'long', url: first(startOf(middle), to) },
];

// In turns, so that whatever else the machine does falls on all of them alike.
const taken = new Map(places.map(({ name }) => [name, [] as number[]]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const { name, url } of places) taken.get(name)!.push((await ask(url)).ms);
}
const ms = (name: string): number => median(taken.get(name)!);

function row(name: string, one: string, other: string): Row {
  const ratio = Number((ms(one) / ms(other)).toFixed(3));
  const detail = { [`${one}Ms`]: ms(one), [`${other}Ms`]: ms(other), rounds: ROUNDS, pageSize: PAGE_SIZE };
  return { name, ratio, goal: GOAL, reached: ratio <= GOAL, detail };
}

const facts = { screenings: items, pages: walk.length, loadSeconds, walkSeconds };
const deep = row('the last full page of a walk against its first', 'deep', 'first');
const rows: Row[] = [
  { ...deep, detail: { ...deep.detail, ...facts } },
  row('a page half-way through a walk against its first', 'half', 'first'),
  row('the same page asked for in a long window against a short one', 'long', 'short'),
];

await mkdir(flags.reportDir, { recursive: true });
const file = join(flags.reportDir, 'bench.json');
await writeFile(file, `${JSON.stringify({ rows }, null, 2)}\n`);
console.log(
  textTable(
    ['row', 'ratio', 'goal', 'reached'],
    rows.map(({ name, ratio, goal, reached }) => [name, ratio.toFixed(2), goal, reached ? 'yes' : 'no']),
  ),
);
console.log(file);
process.exitCode = rows.every(({ reached }) => reached) ? 0 : 1;
