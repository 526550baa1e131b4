/** Walks windows page by page, each walk by one VU, and writes the latency of every page out. paging runs it. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { firstPage, mint, nextPlace, Session, type Place, type Token } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();
const walks = config.walks ?? [];

export const options: Options = {
  scenarios: {
    walks: {
      executor: 'shared-iterations',
      vus: Math.min(config.vus, walks.length),
      iterations: walks.length,
      maxDuration: `${Math.ceil(config.seconds)}s`,
    },
  },
  thresholds: Object.fromEntries(
    Object.entries(config.thresholds).map(([name, rules]) => [name, [...rules]]),
  ),
};

export const setup = (): Token[] => config.clients.map((client) => mint(config, client));

const LONGEST_WAIT_S = 60;
let session: Session | undefined;

export default function (tokens: Token[]): void {
  const iteration = exec.scenario.iterationInTest;
  const walk = walks[iteration]!;
  session ??= new Session(config, config.clients[0]!, tokens[0]!);
  let place: Place | undefined = firstPage(config, session.client, walk.from, walk.to, walk.pageSize);
  for (let depth = 0; place && depth < walk.maxPages;) {
    const sent = session.ask(place, walk.pageSize, Date.now());
    if (sent.status === 429) {
      // Waited out, not counted: this scenario asks what pages cost.
      sleep(Math.min(LONGEST_WAIT_S, Math.max(0.05, sent.retryAfterSeconds ?? 1)));
      continue;
    }
    console.log(`w ${iteration} ${depth} ${sent.items} ${sent.serviceMs.toFixed(3)} ${sent.status}`);
    if (sent.status !== 200) return;
    place = nextPlace(config, sent, walk.to);
    depth += 1;
  }
}
