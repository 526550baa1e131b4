/** Processor time per page of the kit's k6 script, compared with a minimal script. */
import { pageUrl } from '../../engine/client/page.ts';
import type { Target } from '../../engine/target/target.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { judgedShare } from '../estimate/random.ts';
import { mint } from '../run/ask.ts';
import { type K6Run, runK6 } from '../run/k6-run.ts';
import { startReference } from '../../reference-server/command/child.ts';
import { openSession } from '../zoo/setting.ts';
import { measureMedians, type Row, rowOf } from './service.ts';

const SCREENINGS = 10_000;
const PAGE_SIZE = 100;
/** The cost of a page is the difference between two rates, which excludes k6's start. */
const RATES = [20, 320] as const;
const SECONDS = 8;
const ROUNDS = 3;
const GOAL = 0.9;

export async function generatorRow(k6: string, tell: (line: string) => void): Promise<Row> {
  await using running = await startReference(['--screenings', String(SCREENINGS)], { tell });
  const { baseUrl, authUrl, clients } = running.target as unknown as Target;
  const reached = { baseUrl, authUrl, clients: { primary: clients.primary } };
  const { clientId, clientSecret } = clients.primary;
  const session = await openSession(k6, reached, { pageSize: PAGE_SIZE });
  const env = {
    URL: pageUrl(baseUrl, TENANTS.primary, { ...session.prepared.base.window, pageSize: PAGE_SIZE }),
    TOKEN: await mint(session.prepared.target, clientId, clientSecret),
    DURATION: `${SECONDS}s`,
  };
  const config = session.config('bare-pages', { seconds: SECONDS });
  const kinds = {
    judging: (rate: number) =>
      session.run(
        'arrivals',
        session.config('arrivals', {
          requestsPerSecond: rate,
          seconds: SECONDS,
          vus: 50,
          judgedShare: judgedShare(rate),
        }),
      ),
    bare: (rate: number) => runK6('../bench/bare-pages', { k6, config, env: { ...env, RATE: String(rate) } }),
  };
  const measures = { judging: () => secondsPerPage(kinds.judging), bare: () => secondsPerPage(kinds.bare) };
  const seconds = await measureMedians(measures, { rounds: ROUNDS, tell });
  const [judging, bare] = [seconds('judging'), seconds('bare')];
  const detail = {
    pageSize: PAGE_SIZE,
    rounds: ROUNDS,
    pagesPerCoreSecond: Math.round(1 / judging),
    bare: Math.round(1 / bare),
  };
  tell(`one core offers ${detail.pagesPerCoreSecond} pages of ${PAGE_SIZE} a second`);
  return rowOf('k6 that judges pages of 100 against k6 that does not', bare / judging, GOAL, detail);
}

/** Returns processor seconds per page. */
async function secondsPerPage(run: (rate: number) => Promise<K6Run>): Promise<number> {
  const [low, high] = RATES;
  const [few, many] = [await run(low), await run(high)];
  return (many.cpuSeconds! - few.cpuSeconds!) / ((high - low) * SECONDS);
}
