/** Plots as inline SVG: no script, colours from the page's own sheet. */
import { Markup, markup } from '../../certify/render/markup.ts';

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Dots alone, or a line through them. */
  readonly style: 'line' | 'dots';
}

export interface Plot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
  /** A level to compare with, such as the SLO. */
  readonly level?: { readonly at: number; readonly name: string };
  readonly logY?: boolean;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [720, 300, 62, 16, 14, 44];
const COLOURS = ['var(--series1)', 'var(--series2)', 'var(--series3)'];

/** Round numbers from low to high, about count of them. */
function ticks(low: number, high: number, count: number): number[] {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw) ?? raw;
  const found: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step)
    found.push(Number(at.toPrecision(12)));
  return found;
}

export function plot({ title, x, y, series, level, logY }: Plot): Markup {
  const all = series
    .flatMap(({ points }) => points)
    .filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
  if (all.length === 0) return markup``;
  const scaleY = (value: number): number => (logY ? Math.log10(Math.max(value, 0.1)) : value);
  const xs = all.map(([a]) => a);
  const ys = [...all.map(([, b]) => scaleY(b)), ...(level ? [scaleY(level.at)] : [])];
  const span = (values: number[], fromZero: boolean): [number, number] => {
    const low = fromZero ? Math.min(0, ...values) : Math.min(...values);
    const high = Math.max(...values);
    return high > low ? [low, high] : [low, low + 1];
  };
  const [x0, x1] = span(xs, true);
  const [y0, y1] = span(ys, !logY);
  const left = (value: number): string =>
    (LEFT + ((value - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const top = (value: number): string =>
    (HEIGHT - BOTTOM - ((scaleY(value) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const yTicks = logY
    ? ticks(Math.floor(y0), Math.ceil(y1), 5)
        .filter(Number.isInteger)
        .map((power) => 10 ** power)
    : ticks(y0, y1, 5);
  const label = (value: number): string => String(Number(value.toPrecision(4)));
  return markup`<figure><figcaption>${title}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
${yTicks
  .filter((at) => scaleY(at) >= y0 - 1e-9 && scaleY(at) <= y1 + 1e-9)
  .map(
    (at) =>
      markup`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${top(at)}" y2="${top(at)}"/><text class="tick" x="${LEFT - 6}" y="${top(at)}" text-anchor="end" dominant-baseline="middle">${label(at)}</text>`,
  )}
${ticks(x0, x1, 8).map((at) => markup`<text class="tick" x="${left(at)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${label(at)}</text>`)}
<text class="tick" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${x}</text>
<text class="tick" x="12" y="${TOP + 90}" transform="rotate(-90 12 ${TOP + 90})" text-anchor="middle">${y}</text>
${level && markup`<line class="level" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${top(level.at)}" y2="${top(level.at)}"/><text class="tick" x="${WIDTH - RIGHT}" y="${Number(top(level.at)) - 5}" text-anchor="end">${level.name}</text>`}
${series.map(({ points, style }, index) => {
  const colour = COLOURS[index % COLOURS.length]!;
  const shown = points.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
  return style === 'line'
    ? markup`<polyline fill="none" stroke="${colour}" stroke-width="2" points="${shown.map(([a, b]) => `${left(a)},${top(b)}`).join(' ')}"/>`
    : shown.map(([a, b]) => markup`<circle cx="${left(a)}" cy="${top(b)}" r="3.5" fill="${colour}"/>`);
})}
</svg>
<p class="muted">${series.map(({ name }, index) => markup`<svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" fill="${COLOURS[index % COLOURS.length]!}"/></svg> ${name} `)}</p></figure>`;
}

export const PLOT_STYLE = `
figure{margin:1.2rem 0}figcaption{font-weight:600;margin-bottom:.3rem}
figure>svg{display:block;width:100%;height:auto;background:var(--surface);border-radius:6px}
.grid{stroke:var(--border);stroke-width:1}.tick{fill:var(--muted);font-size:12px}
.level{stroke:var(--fail);stroke-width:1.5;stroke-dasharray:6 4}.key{width:.7em;height:.7em}
`;
