/** What all HTML pages share: one palette, one style sheet (page.css), one skeleton. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Status } from '../report/report.ts';
import { Markup, markup, oneLine } from './markup.ts';
import { STATUSES } from './results.ts';

/** Light and dark. Text colours have a contrast of at least 4.5:1 on page, surface and code (WCAG 2.2, 1.4.3). */
export const COLOURS = {
  page: ['#ffffff', '#0f1216'],
  surface: ['#f5f6f8', '#171b21'],
  border: ['#d3d8de', '#343b45'],
  text: ['#1a1f25', '#e6e9ed'],
  muted: ['#535c67', '#a0a9b4'],
  link: ['#0a4fb5', '#8ab8ff'],
  code: ['#eceff3', '#1f252d'],
  pass: ['#176a33', '#63cf85'],
  fail: ['#b0221a', '#ff948a'],
  warn: ['#7d5000', '#ecb84a'],
  untested: ['#535c67', '#a0a9b4'],
  error: ['#7333ab', '#cfa6ff'],
  series1: ['#0a58c2', '#7fb2ff'],
  series2: ['#a34b00', '#f2a65a'],
  series3: ['#0b6b68', '#5cc9c4'],
} as const satisfies Readonly<Record<string, readonly [light: string, dark: string]>>;

const variables = (scheme: 0 | 1): string =>
  Object.entries(COLOURS)
    .map(([name, colours]) => `--${name}:${colours[scheme]};`)
    .join('');

/** Custom properties `--page`, `--text`, `--pass` …; plots use `--series1` onwards. A status is also a class. */
const PALETTE = `:root{color-scheme:light dark;${variables(0)}}
@media screen and (prefers-color-scheme:dark){:root{${variables(1)}}}
${STATUSES.map((status) => `.${status}{color:var(--${status})}\n`).join('')}`;

/** The text of a file next to this one; pages contain it, because they are self-contained. */
export const textOf = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

const STYLE = PALETTE + textOf('page.css');

const sha256 = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

interface Page {
  readonly title: string;
  readonly body: Markup;
  readonly style?: string;
  /** Inline JavaScript at the end of the body. The page must be usable without it. */
  readonly script?: string;
  readonly status: Status;
}

/** A self-contained HTML document; its policy blocks loading and all other scripts, in case escaping ever fails. */
export function page({ title, body, style = '', script = '', status }: Page): string {
  const sheet = STYLE + style;
  const policy = [
    "default-src 'none'",
    'img-src data:',
    `style-src ${sha256(sheet)}`,
    `script-src ${script ? sha256(script) : "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const icon = `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="${COLOURS[status][0]}"/></svg>`,
  )}`;
  return `${markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${oneLine(title)}</title>
<link rel="icon" href="${icon}">
<style>${new Markup(sheet)}</style>
</head>
<body>
${body}
${script !== '' && markup`<script>${new Markup(script)}</script>`}
</body>
</html>`}\n`;
}
