/** Renders badge.svg, which shows the verdict in a README or a dashboard. */
import { clip, markup, oneLine } from './markup.ts';
import { countsText, VERDICT, type Results } from './results.ts';
import { COLOURS } from './style.ts';

const LABEL = 'screenings';
const PX_A_CHARACTER = 6.6;
const PADDING_PX = 8;

const width = (text: string): number => Math.ceil(text.length * PX_A_CHARACTER) + 2 * PADDING_PX;

export function badge({ title: name, verdict, items, remarks }: Results): string {
  const value = remarks.some(([label]) => label === 'selection') ? `${verdict} (selection)` : verdict;
  const left = width(LABEL);
  const right = width(value);
  // White has the contrast on it that this colour has on a white page.
  const [colour] = COLOURS[VERDICT[verdict].status];
  const title = `${clip(oneLine(name), 200)}: ${value}; ${countsText(items)}`;
  const text = (content: string, x: number, boxPx: number) =>
    markup`<text x="${x + boxPx / 2}" y="14" textLength="${boxPx - 2 * PADDING_PX}" lengthAdjust="spacingAndGlyphs">${content}</text>`;
  return `${markup`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${title}">
  <title>${title}</title>
  <clipPath id="round"><rect width="${left + right}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#round)">
    <rect width="${left}" height="20" fill="#3d444d"/>
    <rect x="${left}" width="${right}" height="20" fill="${colour}"/>
  </g>
  <g fill="#fff" text-anchor="middle" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">
    ${text(LABEL, 0, left)}
    ${text(value, left, right)}
  </g>
</svg>`}\n`;
}
