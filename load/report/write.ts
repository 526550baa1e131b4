/** Writes a result: load-SCENARIO.json, load-SCENARIO.html as a self-contained page, and the lines for the terminal. */
import { join } from 'node:path';
import { markup, type Markup, visible } from '../../certify/render/markup.ts';
import { makeFolder, writeAtomically } from '../../engine/files.ts';
import { percent } from '../estimate/numbers.ts';
import { type CapacityFigure, type LoadResult, verdictOf, verdictText } from '../result.ts';
import { facts, table } from '../../certify/render/html.ts';
import { durationText, wrap } from '../../certify/render/results.ts';
import { page } from '../../certify/render/style.ts';
import { plot, PLOT_STYLE } from './plot.ts';

/** Writes a redacted result and returns the path of the JSON file. */
export async function writeResult(result: LoadResult, directory: string): Promise<string> {
  makeFolder(directory);
  const base = join(directory, `load-${result.scenario}`);
  await writeAtomically(`${base}.json`, `${JSON.stringify(result, null, 2)}\n`);
  await writeAtomically(`${base}.html`, resultHtml(result));
  return `${base}.json`;
}

const COLUMNS = 80;

export function terminalSummary(result: LoadResult): string {
  const lines = [
    ...result.summary,
    ...result.findings.map(
      ({ id, level, failures, count }) => `${id} ${level}: ${failures[0]?.message ?? ''} (${count} ×)`,
    ),
    `${result.requests} pages, ${result.tokenCalls} token calls, ${(result.durationMs / 1000).toFixed(0)} s`,
  ].flatMap((line) => wrap(line, COLUMNS - 4).map((part, index) => `${index === 0 ? '  ' : '    '}${part}`));
  const head = wrap(`${result.scenario} · ${result.target}: ${verdictText(result)}`, COLUMNS);
  return visible([...head, ...lines].join('\n'));
}

/** Returns a page with title, verdict and content. */
export function loadPage(
  kind: string,
  title: string,
  [word, status]: readonly [word: string, status: 'pass' | 'fail' | 'untested'],
  body: Markup,
): string {
  return page({
    title: `${kind === 'plan' ? 'Plan' : title}: ${word}`,
    status,
    style: PLOT_STYLE,
    body: markup`<main>
<p class="overline">Screenings Retrieval Service · ${kind}</p>
<h1>${title}</h1>
<p><span class="badge ${status}">${word}</span></p>
${body}
</main>`,
  });
}

const SIZE_COLUMNS = ['window', 'pageSize', 'pages', 'p50Ms', 'itemsPerSecond'];

export function resultHtml(result: LoadResult): string {
  const { scenario, target, generator, tables: rows = {} } = result;
  const share = generator?.cpuShare;
  const points = (table: string, x: string, y: string) =>
    (rows[table] ?? []).map((row) => [Number(row[x]), Number(row[y])] as const);
  const latencies = { p99: points('time', 'seconds', 'p99Ms'), p50: points('time', 'seconds', 'p50Ms') };
  const byShare = points('shares', 'share', 'ms');
  const depths = (result.depth?.points ?? []).map(({ depth, p50Ms }) => [depth, p50Ms] as const);
  let admitted = 0;
  const admissions = points('answers', 'seconds', 'ok').map(([at, ok]) => [at, (admitted += ok)] as const);
  const body = markup`${result.void !== false && markup`<p class="note">The result is void: ${result.void}</p>`}
${result.summary.map((line) => markup`<p>${line}</p>`)}
${facts([
  ['target', target],
  ['started', result.startedAt],
  ['duration', durationText(result.durationMs)],
  ['pages requested', String(result.requests)],
  ['token calls', String(result.tokenCalls)],
  ['page size', String(result.pageSize)],
  ...(share === undefined ? [] : [["generator's share of the CPU", percent(share, 0)] as const]),
])}
${findings(result)}
${result.capacity && capacity(result.capacity)}
${plot('Latency by depth', 'pages into the traversal', 'p50, ms', { page: depths })}
${plot('Requests admitted', 'seconds', 'answered 200, cumulative', { admitted: admissions })}
${plot('Latency over time', 'seconds', 'ms', latencies, { logY: true })}
${plot('Latency by share of requests, over the whole run', 'share of requests', 'ms', { 'from the moment a request was due': byShare }, { logY: true })}
${table({
  title: 'By window and page size',
  head: SIZE_COLUMNS,
  rows: (rows['sizes'] ?? []).map((row) => SIZE_COLUMNS.map((name) => String(row[name]))),
})}`;
  return loadPage('load result', scenario, verdictOf(result), body);
}

function findings({ findings: found }: LoadResult): Markup | undefined {
  if (found.length === 0) return undefined;
  return markup`<h2>Broken requirements</h2>${found.map(
    ({ id, level, title, status, lookAt, failures }) =>
      markup`<h3><span class="id">${id}</span> <span class="chip ${status}">${level}</span></h3><p>${title}</p>
<ul>${failures.map(({ message, count }) => markup`<li>${message} (${count} ×)</li>`)}</ul>
${lookAt.length > 0 && markup`<p class="muted">Look at: ${lookAt.join('; ')}</p>`}`,
  )}`;
}

const OFFERED = 'requests offered, per second';

function capacity(figure: CapacityFigure): Markup {
  const steps = [...figure.steps].sort((a, b) => a.offered - b.offered);
  const { requestsPerSecond: at, interval } = figure;
  // JSON has null for an unknown end.
  const [from, to] = [interval[0] ?? 0, interval[1] ?? Infinity];
  const upTo = Number.isFinite(to) ? to.toFixed(1) : 'unknown';
  const found = { at, from, to, name: `${at.toFixed(1)}/s, between ${from.toFixed(1)} and ${upTo}` };
  const by = (read: (step: (typeof steps)[number]) => number) =>
    steps.map((step) => [step.offered, read(step)] as const);
  const latencies = { p99: by((step) => step.p99Ms), p50: by((step) => step.p50Ms) };
  const admitted = { 'answers that were not 429': by((step) => step.accepted) };
  const level = { at: figure.slo.p99Ms, name: `SLO ${figure.slo.p99Ms} ms` };
  return markup`<h2>Capacity${figure.clients > 1 ? `, ${figure.clients} clients` : ''}</h2>
${plot('Latency by arrival rate', OFFERED, 'ms', latencies, { logY: true, level, figure: found })}
${plot('Throughput by arrival rate', OFFERED, 'answered, per second', admitted, { figure: found })}
${table({
  title: 'The steps of the search',
  head: ['offered/s', 'achieved/s', 's', 'p50 ms', 'p99 ms', 'errors', '429', 'held'],
  rows: figure.steps.map((step) => [
    step.offered.toFixed(1),
    step.achieved.toFixed(1),
    step.seconds.toFixed(0),
    step.p50Ms.toFixed(1),
    step.p99Ms.toFixed(1),
    percent(step.errorRate, 2),
    percent(step.limitedRate, 2),
    step.held ? 'yes' : 'no',
  ]),
})}
${figure.perServer && capacity(figure.perServer)}`;
}
