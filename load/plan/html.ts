/** The plan as one page: the load of a day against what carries it, how it grows, and the arithmetic. */
import { markup } from '../../certify/render/markup.ts';
import { page } from '../../certify/render/style.ts';
import { plot, PLOT_STYLE } from '../report/plot.ts';
import type { LoadResult } from '../result.ts';
import type { Plan } from './plan.ts';

export function planHtml(planned: Plan, measured: LoadResult): string {
  const { day, carried, steps, warnings, utilisation, peakRequestsPerSecond, limitedFirstBy, years } =
    planned;
  const carries = peakRequestsPerSecond / utilisation;
  const status = carried ? 'pass' : 'fail';
  const word = carried ? 'Carried' : 'Not carried';
  const body = markup`<main>
<p class="overline">Screenings Retrieval Service · plan</p>
<h1>${measured.target}</h1>
<p><span class="badge ${status}">${word}</span></p>
<p>What becomes the limit first: ${limitedFirstBy}</p>
${warnings.map((warning) => markup`<p class="note">${warning}</p>`)}
${plot({
  title: 'Load over the day, against what was measured',
  x: 'hour; the busiest one stands at 12',
  y: 'requests a second',
  level: { at: carries, name: `${carries.toPrecision(3)}/s: here it breaks` },
  series: [
    {
      name: 'load',
      style: 'line',
      points: day.flatMap(
        (load, hour) =>
          [
            [hour, load],
            [hour + 1, load],
          ] as const,
      ),
    },
  ],
})}
${plot({
  title: 'Load at the peak by the year',
  x: 'years from now',
  y: 'requests a second',
  level: { at: carries, name: `${carries.toPrecision(3)}/s` },
  series: [
    {
      name: 'load at the peak',
      style: 'line',
      points: years.map(
        (one) => [one.year, (peakRequestsPerSecond * one.tenants) / years[0]!.tenants] as const,
      ),
    },
  ],
})}
<h2>Arithmetic</h2>
<ul>${steps.map((step) => markup`<li>${step}</li>`)}</ul>
</main>`;
  return page({ title: `Plan: ${word}`, body, style: PLOT_STYLE, status });
}
