/** Processor time per page of the kit's k6 script, compared with a minimal script. */
import { pageUrl } from '../../engine/client/page.ts';
import type { Target } from '../../engine/target/target.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { ascending, largest, median } from '../estimate/numbers.ts';
import { mint } from '../run/target.ts';
import { arrivalsOf, type K6Run, runK6 } from '../run/k6-run.ts';
import { startReference } from '../../reference-server/command/child.ts';
import { openSession } from '../zoo/setting.ts';
import { type Row, rowOf } from './service.ts';

const SCREENINGS = 10_000;
const PAGE_SIZE = 100;
const RATE = 320;
const SECONDS = 14;
/** Seconds before the end of a run between which processor time counts, which excludes the start and the end of k6. */
const [FROM, TO] = [11, 1];
/** Each round compares one run of each script; other load on the machine affects both alike. */
const ROUNDS = 7;
const GOAL = 0.9;

export async function generatorRow(k6: string, tell: (line: string) => void): Promise<Row> {
  await using running = await startReference(['--screenings', String(SCREENINGS)], { tell });
  const { baseUrl, authUrl, clients } = running.target as unknown as Target;
  const reached = { baseUrl, authUrl, clients: { primary: clients.primary } };
  const session = await openSession(k6, reached, { pageSize: PAGE_SIZE });
  const env = {
    URL: pageUrl(baseUrl, TENANTS.primary, { ...session.prepared.base.window, pageSize: PAGE_SIZE }),
    TOKEN: await mint(session.prepared.target),
    DURATION: `${SECONDS}s`,
    RATE: String(RATE),
  };
  // Go's defaults, with which `k6 run` runs it.
  const bareEnv = { ...env, GOGC: '100', GOMEMLIMIT: 'off' };
  const load = { requestsPerSecond: RATE, seconds: SECONDS, vus: 50 };
  const kinds = {
    judging: () => session.run('arrivals', load),
    bare: () => runK6({ k6, config: session.config('../bench/bare-pages', load), env: bareEnv }),
  };
  const pages = { judging: [] as number[], bare: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const order = Object.keys(kinds) as (keyof typeof kinds)[];
    for (const kind of round % 2 === 0 ? order : order.reverse())
      pages[kind].push(pagesPerCpuSecond(await kinds[kind]()));
    tell(`round ${round + 1} of ${ROUNDS}: ${(pages.judging[round]! / pages.bare[round]!).toFixed(2)}`);
  }
  const ratios = ascending(pages.judging.map((judging, round) => judging / pages.bare[round]!));
  const [judging, bare] = [Math.round(median(pages.judging)), Math.round(median(pages.bare))];
  const range = { lowest: ratios[0]!, highest: ratios.at(-1)! };
  const detail = { pageSize: PAGE_SIZE, rounds: ROUNDS, pagesPerCoreSecond: judging, bare, ...range };
  tell(`one core offers ${judging} pages of ${PAGE_SIZE} a second`);
  return rowOf('k6 that judges pages of 100 against k6 that does not', median(ratios), GOAL, detail);
}

function pagesPerCpuSecond({ readings, records, summary }: K6Run): number {
  const endMs = readings.at(-1)!.atMs;
  const counted = readings.filter(({ atMs }) => atMs >= endMs - FROM * 1000 && atMs <= endMs - TO * 1000);
  const [first, last] = [counted[0]!, counted.at(-1)!];
  // On a busy machine the minimal script sends fewer pages than asked for, and the kit's needs longer.
  const ends = arrivalsOf(records).map(({ dueMs, latencyMs }) => dueMs + latencyMs);
  const pagesPerMs = summary!.counts['iterations']! / largest(ends, SECONDS * 1000);
  return (pagesPerMs * (last.atMs - first.atMs)) / (last.cpuSeconds - first.cpuSeconds);
}
