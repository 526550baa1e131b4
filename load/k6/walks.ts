/** Walks windows page by page, each walk by one VU, and writes the latency of every page out. paging runs it. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { pairedAt } from '../estimate/depth.ts';
import { begin, type Begun } from './lib/begin.ts';
import { firstPage, nextPlace, Session, type Place, type Sent } from './lib/client.ts';
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

/** A page, limits waited out and not counted: this scenario asks what pages cost. */
function read(of: Session, place: Place, pageSize: number): Sent {
  for (;;) {
    const sent = of.ask(place, pageSize, Date.now());
    if (sent.status !== 429) return sent;
    sleep(Math.min(LONGEST_WAIT_S, Math.max(0.05, sent.retryAfterSeconds ?? 1)));
  }
}

const rounded = ({ serviceMs }: Sent): number => Math.round(serviceMs * 1000) / 1000;

export default function (begun: Begun): void {
  const iteration = exec.scenario.iterationInTest;
  const walk = walksOf(begun)[iteration]!;
  session ??= new Session(config, begun.clients[0]!, begun.tokens[0]!);
  const own = session;
  let place: Place | undefined = firstPage(config, own.client, walk.from, walk.to, walk.pageSize);
  for (let depth = 0; place && depth < walk.maxPages; depth += 1) {
    const { from } = place;
    const first = (): number =>
      rounded(read(own, firstPage(config, own.client, from, walk.to, walk.pageSize), walk.pageSize));
    const paired = walk.paired ? pairedAt(depth) : undefined;
    let firstMs = paired === 'deep-last' ? first() : undefined;
    const sent = read(own, place, walk.pageSize);
    if (paired && sent.status === 200) firstMs ??= first();
    const { items, status } = sent;
    write({ kind: 'page', walk: iteration, depth, items, ms: rounded(sent), firstMs, status });
    if (status !== 200) return;
    place = nextPlace(config, sent, walk.to);
  }
}
