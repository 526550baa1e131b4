/** The style of all HTML pages: one palette, one style sheet, one skeleton; and the script of the report. */
import { createHash } from 'node:crypto';
import type { Status } from '../report/report.ts';
import { Markup, markup, oneLine } from './markup.ts';

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

/** The palette as custom properties `--page`, `--text`, `--pass` …; plots use `--series1` onwards. */
const STYLE = `
:root{color-scheme:light dark;${variables(0)}}
@media screen and (prefers-color-scheme:dark){:root{${variables(1)}}}
*{box-sizing:border-box}
[hidden]{display:none!important}
html{scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:72rem;padding:2rem 1.25rem 4rem;background:var(--page);color:var(--text);
  font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
h1,h2,h3,h4{line-height:1.25;margin:0;text-wrap:balance}
h1{font-size:1.9rem;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:1.35rem;margin:2.75rem 0 .9rem;padding-top:.2rem}
h3{font-size:1.05rem;margin:1.6rem 0 .5rem}
p{margin:.6rem 0;overflow-wrap:anywhere}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:3px}
code,pre,.id{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.88em}
.muted{color:var(--muted)}
.overline{margin:0 0 .35rem;color:var(--muted);font-size:.8rem;font-weight:600;letter-spacing:.08em;text-transform:uppercase}
.lead{font-size:1.08rem}
.note{margin:1rem 0;padding:.7rem 1rem;border-left:4px solid var(--warn);background:var(--surface);border-radius:0 6px 6px 0}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;padding:.4rem .8rem;background:var(--page)}

.badge{display:inline-block;padding:.3rem .95rem;border:2px solid currentColor;border-radius:99px;font-weight:700;font-size:1.05rem;white-space:nowrap}
.chip{display:inline-block;padding:.02rem .5rem;border:1px solid currentColor;border-radius:99px;font-size:.78rem;font-weight:600;white-space:nowrap}
.pass{color:var(--pass)}.fail{color:var(--fail)}.warn{color:var(--warn)}.untested{color:var(--untested)}.error{color:var(--error)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.9rem 1.5rem;margin:1.4rem 0}
.facts dt{color:var(--muted);font-size:.82rem;overflow-wrap:anywhere}
.facts dd{margin:0;overflow-wrap:anywhere}
@media (max-width:34rem){body{padding:1.25rem .9rem 3rem}.facts>div{display:grid;grid-template-columns:7.5rem minmax(0,1fr);align-items:baseline}.facts{gap:.35rem}}
.bar{display:block;width:100%;height:.7rem;border-radius:99px;overflow:hidden;margin:1.2rem 0 .5rem}
.bar rect{fill:currentColor}
.tally{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;margin:0;padding:0;list-style:none}

.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:.42rem .9rem .42rem 0;border-bottom:1px solid var(--border);text-align:left;vertical-align:top}
th{font-weight:600}
thead th{color:var(--muted);font-size:.82rem}
td{overflow-wrap:break-word}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:0 2.5rem}

button,select,input{font:inherit;color:inherit;background:var(--page);border:1px solid var(--border);border-radius:6px;padding:.28rem .6rem}
button{cursor:pointer}
button:hover{border-color:var(--muted)}

.command+.command{margin-top:.5rem}
.command{display:flex;align-items:flex-start;gap:.5rem}
.command code{flex:1;min-width:0;padding:.4rem .65rem;background:var(--code);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
.copy{flex:none;font-size:.8rem;padding:.25rem .6rem}

@media print{
  body{max-width:none;padding:0;font-size:10pt}
  h2{break-after:avoid;margin-top:1.4rem}h3,thead{break-after:avoid}
  .badge,.chip,.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}
  .noprint,.copy,.skip{display:none!important}
  a{color:inherit;text-decoration:none}
}
`;

const sha256 = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

interface Page {
  readonly title: string;
  readonly body: Markup;
  readonly style?: string;
  /** Inline JavaScript at the end of the body. The page must be usable without it. */
  readonly script?: string;
  readonly status?: Status;
}

/**
 * A complete, self-contained HTML document. Its content security policy blocks all loading and all scripts except the
 * given one, in case escaping ever fails.
 */
export function page({ title, body, style = '', script = '', status = 'untested' }: Page): string {
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

/**
 * The script of the report page, as text: filters, copy buttons, and opening the target of an anchor. Without it,
 * everything is listed, can be opened and closed, and selected by hand.
 */
export const SCRIPT = `
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const rows = all('details.requirement');
  const filters = document.getElementById('filters');
  const boxes = all('#filters [name=status]');
  const [section, needs, text] = ['section', 'class', 'text'].map((name) => filters.elements[name]);
  const shown = document.getElementById('shown');

  function apply() {
    const statuses = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const wanted = text.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const { status, section: own, class: kind } = row.dataset;
      row.hidden = !(
        statuses.has(status) &&
        (section.value === '' || section.value === own) &&
        (needs.value === '' || needs.value === kind) &&
        row.querySelector('summary').textContent.toLowerCase().includes(wanted)
      );
      if (!row.hidden) count += 1;
    }
    for (const group of all('section.group')) {
      group.hidden = !group.querySelector('details.requirement:not([hidden])');
    }
    shown.textContent = 'Showing ' + count + ' of ' + rows.length + ' ' + shown.dataset.noun;
  }

  function openTarget() {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* as it stands */ }
    const target = id && document.getElementById(id);
    if (!target) return;
    if (target.closest('[hidden]')) { filters.reset(); apply(); }
    if (target.tagName === 'DETAILS') target.open = true;
    target.scrollIntoView();
  }

  async function copy(button) {
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand('copy');
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    if (button.classList.contains('copy')) copy(button);
    if (button.id === 'open-all' || button.id === 'close-all') {
      for (const row of rows) if (!row.hidden) row.open = button.id === 'open-all';
    }
  });
  filters.addEventListener('input', apply);
  filters.addEventListener('submit', (event) => event.preventDefault());
  filters.addEventListener('reset', () => setTimeout(apply));
  addEventListener('hashchange', openTarget);

  for (const element of [filters, ...all('.copy')]) element.hidden = false;
  apply();
  openTarget();
})();
`;
