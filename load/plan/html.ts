/** The page of a plan: load over a day and over years compared with the capacity, and the arithmetic. */
import { markup } from '../../certify/render/markup.ts';
import { loadPage } from '../report/html.ts';
import { plot } from '../report/plot.ts';
import type { LoadResult } from '../result.ts';
import type { Plan } from './plan.ts';

export function planHtml(planned: Plan, { target }: LoadResult): string {
  const { day, carried, steps, warnings, utilisation, peakRequestsPerSecond: peak, years } = planned;
  const carries = peak / utilisation;
  const rate = `${carries.toPrecision(3)}/s`;
  const body = markup`<p>First limit: ${planned.limitedFirstBy}</p>
${warnings.map((warning) => markup`<p class="note">${warning}</p>`)}
${plot({
  title: 'Load over the day compared with the capacity',
  x: 'hour (12 is the busiest)',
  y: 'requests per second',
  level: { at: carries, name: `capacity ${rate}` },
  series: [
    { name: 'load', points: day.flatMap((load, hour) => [hour, hour + 1].map((at) => [at, load] as const)) },
  ],
})}
${plot({
  title: 'Load at the peak by year',
  x: 'years from now',
  y: 'requests per second',
  level: { at: carries, name: rate },
  series: [
    {
      name: 'load at the peak',
      points: years.map(({ year, tenants }) => [year, (peak * tenants) / years[0]!.tenants]),
    },
  ],
})}
<h2>Arithmetic</h2>
<ul>${steps.map((step) => markup`<li>${step}</li>`)}</ul>`;
  return loadPage('plan', target, carried ? ['Carried', 'pass'] : ['Not carried', 'fail'], body);
}
