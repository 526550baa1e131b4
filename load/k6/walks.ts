/** Traverses windows, one VU per traversal, and records the latency of every page. `paging` runs it. */
import { check } from 'k6';
import exec from 'k6/execution';
import { depthShape, LEAST_PAGES, pairedAt, type DeepPage } from '../estimate/depth.ts';
import type { Client, PageRequest, Sent } from './lib/client.ts';
import { areRecordsRead, readConfig, served, thresholdsOf, type Walk } from './lib/config.ts';
import { parseQuery } from './lib/judge.ts';
import { write } from './lib/record.ts';
import { clientOf, runSetup, SETUP, type SetupData } from './lib/setup.ts';

const config = readConfig({ seconds: 600 });

export const options = {
  ...SETUP,
  scenarios: {
    walks: {
      executor: 'shared-iterations',
      vus: Math.min(config.vus, config.walks?.length ?? 1),
      iterations: config.walks?.length ?? 1,
      maxDuration: `${Math.ceil(config.seconds)}s`,
    },
  },
  thresholds: thresholdsOf({ ...served(config), checks: ['rate>=1'] }),
};

export const setup = (): SetupData => runSetup(config);

/** By hand: one traversal of a hundred pages. */
const walksOf = ({ window }: SetupData): readonly Walk[] =>
  config.walks ?? [{ ...window, pageSize: config.pageSize, maxPages: 100, paired: true }];

let client: Client | undefined;

export default function (data: SetupData): void {
  const iteration = exec.scenario.iterationInTest;
  const walk = walksOf(data)[iteration]!;
  const own = (client ??= clientOf(config, data, 0));
  const pageFrom = (from: string): PageRequest => own.first(from, walk.to, walk.pageSize);
  const pages: DeepPage[] = [];
  let pageRequest: PageRequest | undefined = pageFrom(walk.from);
  for (let depth = 0; pageRequest && depth < walk.maxPages; depth += 1) {
    const { from = walk.from } = parseQuery(pageRequest.url);
    const readFirst = (): Sent => own.fetchWithRetries(pageFrom(from));
    const paired = walk.paired ? pairedAt(depth) : undefined;
    let first = paired === 'deep-last' ? readFirst() : undefined;
    const sent = own.fetchWithRetries(pageRequest);
    if (paired && sent.status === 200) first ??= readFirst();
    // The latency of a failed first page is no measure of a deep one.
    const status = first && first.status !== 200 ? first.status : sent.status;
    const firstMs = first?.serviceMs;
    const items = status === 200 ? Number(sent.response!.json('items.#')) : 0;
    const ms = Math.round(sent.serviceMs * 1000) / 1000;
    if (areRecordsRead) write({ kind: 'page', walk: iteration, depth, from, items, ms, firstMs, status });
    if (status !== 200) return;
    pages.push({ depth, ms, firstMs });
    // A missing Link is a finding, and no reason to measure less.
    const next = sent.next ?? (sent.response!.json('links.next') as string | undefined);
    pageRequest = own.next(pageRequest, next);
  }
  if (!areRecordsRead) reportDepth(pages);
}

function reportDepth(pages: readonly DeepPage[]): void {
  if (pages.length < LEAST_PAGES)
    return console.log(`${pages.length} pages are too few to compare depths: use a smaller -e PAGE_SIZE`);
  const { flat, shape, likelyCause, ratios } = depthShape({ pages, windows: [], emptyMs: [] });
  console.log(
    `${shape}: of ${pages.length} pages deep ones cost ${ratios.deep.toFixed(2)} × first pages of windows that start there${likelyCause ? `; likely cause: ${likelyCause}` : ''}`,
  );
  check(flat, { 'deep pages cost as much as first pages at their position': (is) => is });
}
