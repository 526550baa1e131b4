/** Walks windows page by page, each walk by one VU, and writes the latency of every page out. paging runs it. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { begin, type Begun } from './lib/begin.ts';
import { firstPage, nextPlace, Session, type Place } from './lib/client.ts';
import { readConfig, thresholdsOf, type Walk } from './lib/config.ts';
import { write } from './lib/record.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ seconds: 600, records: true });

export const options: Options = {
  scenarios: {
    walks: {
      executor: 'shared-iterations',
      vus: Math.min(config.vus, config.walks?.length ?? 1),
      iterations: config.walks?.length ?? 1,
      maxDuration: `${Math.ceil(config.seconds)}s`,
    },
  },
  thresholds: thresholdsOf(config, { findings: ['count<1'], errors: ['count<1'] }),
};

export const setup = (): Begun => begin(config);

/** By hand one walk from the beginning, for a hundred pages. */
const walksOf = ({ window }: Begun): readonly Walk[] =>
  config.walks ?? [{ label: 'all', ...window, pageSize: config.pageSize, maxPages: 100 }];

const LONGEST_WAIT_S = 60;
let session: Session | undefined;

export default function (begun: Begun): void {
  const iteration = exec.scenario.iterationInTest;
  const walk = walksOf(begun)[iteration]!;
  session ??= new Session(config, begun.clients[0]!, begun.tokens[0]!);
  let place: Place | undefined = firstPage(config, session.client, walk.from, walk.to, walk.pageSize);
  for (let depth = 0; place && depth < walk.maxPages;) {
    const sent = session.ask(place, walk.pageSize, Date.now());
    if (sent.status === 429) {
      // Waited out, not counted: this scenario asks what pages cost.
      sleep(Math.min(LONGEST_WAIT_S, Math.max(0.05, sent.retryAfterSeconds ?? 1)));
      continue;
    }
    const { items, status, serviceMs } = sent;
    write({ kind: 'page', walk: iteration, depth, items, ms: Math.round(serviceMs * 1000) / 1000, status });
    if (sent.status !== 200) return;
    place = nextPlace(config, sent, walk.to);
    depth += 1;
  }
}
