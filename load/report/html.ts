/** load-SCENARIO.html: a result as one page that needs no other file. */
import { markup, type Markup } from '../../certify/render/markup.ts';
import { page } from '../../certify/render/style.ts';
import { bucketEndMs } from '../k6/lib/histogram.ts';
import type { CapacityFigure, LoadResult } from '../result.ts';
import { plot, PLOT_STYLE } from './plot.ts';

export function resultHtml(result: LoadResult): string {
  const { scenario, target } = result;
  const [status, word] =
    result.void !== false
      ? (['untested', 'Void'] as const)
      : !result.conformant
        ? (['fail', 'Non-conformant'] as const)
        : result.held
          ? (['pass', 'Held'] as const)
          : (['fail', 'Not held'] as const);
  const facts: [string, string][] = [
    ['Target', target],
    ['Started', result.startedAt],
    ['Duration', `${(result.durationMs / 1000).toFixed(0)} s`],
    ['Pages asked', String(result.requests)],
    ['Token calls', String(result.tokenCalls)],
    ['Page size', String(result.pageSize)],
    ...(result.generator?.cpuShare === undefined
      ? []
      : [
          ['Generator, share of CPU', `${(result.generator.cpuShare * 100).toFixed(0)} %`] as [
            string,
            string,
          ],
        ]),
  ];
  const body = markup`<main>
<p class="overline">Screenings Retrieval Service · load result</p>
<h1>${scenario}</h1>
<p><span class="badge ${status}">${word}</span></p>
${result.void !== false && markup`<p class="note">This run says nothing about the target: ${result.void}</p>`}
${result.summary.map((line) => markup`<p>${line}</p>`)}
<dl class="facts">${facts.map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${findings(result)}
${result.capacity && capacity(result.capacity)}
${result.depth && plot({ title: 'Latency by depth', x: 'pages into the walk', y: 'p50, ms', series: [{ name: 'page', style: 'line', points: result.depth.points.map((one) => [one.depth, one.p50Ms] as const) }] })}
${answers(result)}
${overTime(result)}
${histogram(result)}
${tables(result)}
</main>`;
  return page({ title: `${scenario}: ${word}`, body, style: PLOT_STYLE, status });
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

function capacity(figure: CapacityFigure): Markup {
  const steps = [...figure.steps].sort((a, b) => a.offered - b.offered);
  const { requestsPerSecond: at, interval } = figure;
  // In JSON an end that is unknown is null.
  const [from, to] = [interval[0] ?? 0, interval[1] ?? Infinity];
  const upTo = Number.isFinite(to) ? to.toFixed(1) : 'unknown';
  const found = { at, from, to, name: `${at.toFixed(1)}/s, between ${from.toFixed(1)} and ${upTo}` };
  return markup`<h2>Capacity${figure.clients > 1 ? `, ${figure.clients} clients` : ''}</h2>
${plot({
  title: 'Latency by arrival rate',
  x: 'requests offered, per second',
  y: 'ms',
  logY: true,
  level: { at: figure.slo.p99Ms, name: `SLO ${figure.slo.p99Ms} ms` },
  figure: found,
  series: [
    { name: 'p99', style: 'line', points: steps.map((step) => [step.offered, step.p99Ms] as const) },
    { name: 'p50', style: 'line', points: steps.map((step) => [step.offered, step.p50Ms] as const) },
  ],
})}
${plot({
  title: 'Throughput by arrival rate',
  x: 'requests offered, per second',
  y: 'answered, per second',
  figure: found,
  series: [
    {
      name: 'answers that were not 429',
      style: 'dots',
      points: steps.map((step) => [step.offered, step.accepted] as const),
    },
  ],
})}
${rows(
  'The steps of the search',
  ['offered/s', 'achieved/s', 's', 'p50 ms', 'p99 ms', 'errors', '429', 'held'],
  figure.steps.map((step) => [
    step.offered.toFixed(1),
    step.achieved.toFixed(1),
    step.seconds.toFixed(0),
    step.p50Ms.toFixed(1),
    step.p99Ms.toFixed(1),
    `${(step.errorRate * 100).toFixed(2)} %`,
    `${(step.limitedRate * 100).toFixed(2)} %`,
    step.held ? 'yes' : 'no',
  ]),
)}
${figure.perServer && capacity(figure.perServer)}`;
}

function answers({ tables: all }: LoadResult): Markup | undefined {
  const asked = all?.['answers'];
  if (!asked) return undefined;
  return plot({
    title: 'Requests let through',
    x: 'seconds',
    y: 'answered 200, in all',
    series: [
      {
        name: 'let through',
        style: 'line',
        points: asked.reduce<[number, number][]>(
          (points, { seconds, ok }) => [...points, [Number(seconds), (points.at(-1)?.[1] ?? 0) + Number(ok)]],
          [],
        ),
      },
    ],
  });
}

function overTime({ tables: all }: LoadResult): Markup | undefined {
  const time = all?.['time'];
  if (!time) return undefined;
  const of = (name: string) => time.map((row) => [Number(row['seconds']), Number(row[name])] as const);
  return plot({
    title: 'Latency over time',
    x: 'seconds',
    y: 'ms',
    logY: true,
    series: [
      { name: 'p99', style: 'line', points: of('p99Ms') },
      { name: 'p50', style: 'line', points: of('p50Ms') },
    ],
  });
}

function histogram({ histogram: counts }: LoadResult): Markup | undefined {
  if (!counts || Object.keys(counts).length === 0) return undefined;
  let seen = 0;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const points = Object.entries(counts)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .sort(([a], [b]) => a - b)
    .map(([bucket, count]) => [(seen += count) / total, bucketEndMs(bucket)] as const);
  return plot({
    title: 'Latency by share of requests, over the whole run',
    x: 'share of requests',
    y: 'ms at most',
    logY: true,
    series: [{ name: 'from the moment a request was due', style: 'line', points }],
  });
}

function tables({ tables: all }: LoadResult): Markup | undefined {
  const sizes = all?.['sizes'];
  if (!sizes || sizes.length === 0) return undefined;
  const names = ['window', 'pageSize', 'pages', 'p50Ms', 'itemsPerSecond'];
  return markup`<h2>By window and page size</h2>${rows(
    'By window and page size',
    names,
    sizes.map((row) => names.map((name) => String(row[name] ?? ''))),
  )}`;
}

const rows = (name: string, header: readonly string[], lines: readonly (readonly string[])[]): Markup =>
  markup`<div class="scroll" role="region" tabindex="0" aria-label="${name}"><table><thead><tr>${header.map((name) => markup`<th scope="col" class="number">${name}</th>`)}</tr></thead><tbody>${lines.map(
    (line) => markup`<tr>${line.map((cell) => markup`<td class="number">${cell}</td>`)}</tr>`,
  )}</tbody></table></div>`;
