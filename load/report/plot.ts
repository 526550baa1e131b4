/** Plots as inline SVG, without scripts, coloured by the page's style sheet. */
import { largest, rounded, smallest } from '../estimate/numbers.ts';
import { Markup, markup } from '../../certify/render/markup.ts';

type SeriesByName = Readonly<Record<string, readonly (readonly [x: number, y: number])[]>>;

interface Options {
  /** A horizontal line to compare with, such as the SLO. */
  readonly level?: { readonly at: number; readonly name: string };
  /** A value on the x axis with its interval. */
  readonly figure?: Readonly<Record<'at' | 'from' | 'to', number>> & { readonly name: string };
  readonly logY?: boolean;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [720, 300, 62, 26, 14, 44];
const COLOURS = ['var(--series1)', 'var(--series2)'];

const ROUND = [1, 2, 5, 10];

/** Ticks that enclose low and high, about `count` of them, in steps of 1, 2 or 5 times a power of ten. */
function linearTicks(low: number, high: number, count: number): number[] {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ROUND.map((factor) => factor * power).find((each) => each >= raw * 0.999)!;
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}

function logTicks(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  return Array.from({ length: Math.max(1, last - first) + 1 }, (_, index) => 10 ** (first + index));
}

/** Empty without points. x and y: what the axes show. */
export function plot(
  title: string,
  x: string,
  y: string,
  series: SeriesByName,
  { level, figure, logY }: Options = {},
): Markup {
  const shown = Object.values(series).map((points) =>
    points.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b)),
  );
  const all = shown.flat();
  if (all.length === 0) return markup``;
  const scaleY = (value: number): number => (logY ? Math.log10(Math.max(value, 0.1)) : value);
  const within = figure ? [figure.from, figure.at, figure.to].filter(Number.isFinite) : [];
  const xs = [0, ...all.map(([a]) => a), ...within];
  const ys = [...all.map(([, b]) => (logY ? Math.max(b, 0.1) : b)), ...(level ? [level.at] : [])];
  const [low, high] = [smallest(ys), largest(ys)];
  const xTicks = linearTicks(smallest(xs), largest(xs) || 1, 6);
  const yTicks = logY ? logTicks(low, high) : linearTicks(Math.min(0, low), high || 1, 5);
  const [x0, x1] = [xTicks[0]!, xTicks.at(-1)!];
  const [y0, y1] = [scaleY(yTicks[0]!), scaleY(yTicks.at(-1)!)];
  const left = (value: number) => (LEFT + ((value - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const top = (value: number): string =>
    (HEIGHT - BOTTOM - ((scaleY(value) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const to = figure && Number.isFinite(figure.to) ? figure.to : x1;
  return markup`<figure><figcaption>${title}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}${figure && `: ${figure.name}`}">
${figure && markup`<rect class="interval" x="${left(figure.from)}" y="${TOP}" width="${(Number(left(to)) - Number(left(figure.from))).toFixed(1)}" height="${HEIGHT - BOTTOM - TOP}"/>`}
${yTicks.map(
  (at) =>
    markup`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${top(at)}" y2="${top(at)}"/><text class="tick" x="${LEFT - 6}" y="${top(at)}" text-anchor="end" dominant-baseline="middle">${rounded(at)}</text>`,
)}
${xTicks.map((at) => markup`<text class="tick" x="${left(at)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${rounded(at)}</text>`)}
${figure && markup`<line class="figure" x1="${left(figure.at)}" x2="${left(figure.at)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/><text class="tick" x="${left(figure.at)}" y="${TOP + 12}" dx="${figure.at > (x0 + x1) / 2 ? -6 : 6}" text-anchor="${figure.at > (x0 + x1) / 2 ? 'end' : 'start'}">${figure.name}</text>`}
<text class="tick" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${x}</text>
<text class="tick" transform="translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">${y}</text>
${level && markup`<line class="level" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${top(level.at)}" y2="${top(level.at)}"/><text class="tick" x="${WIDTH - RIGHT}" y="${Number(top(level.at)) - 5}" text-anchor="end">${level.name}</text>`}
${shown.map(
  (points, index) =>
    markup`<polyline fill="none" stroke="${COLOURS[index]!}" stroke-width="2" points="${points.map(([a, b]) => `${left(a)},${top(b)}`).join(' ')}"/>`,
)}
</svg>
<p class="muted">${Object.keys(series).map((name, index) => markup`<svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" fill="${COLOURS[index]!}"/></svg> ${name} `)}</p></figure>`;
}

export const PLOT_STYLE = `
figure{margin:1.2rem 0}figcaption{font-weight:600;margin-bottom:.3rem}
figure>svg{display:block;width:100%;height:auto;background:var(--surface);border-radius:6px}
.grid{stroke:var(--border);stroke-width:1}.tick{fill:var(--muted);font-size:12px}
.interval{fill:var(--series3);opacity:.14}.figure{stroke:var(--series3);stroke-width:2}
@media (max-width:34rem){.tick{font-size:19px}}
.level{stroke:var(--fail);stroke-width:1.5;stroke-dasharray:6 4}.key{width:.7em;height:.7em}
`;
