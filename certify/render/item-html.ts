/** One item on the report's page: a summary line that opens to its evidence. */
import type { Status } from '../report.ts';
import { clip, markup, prose, type Markup } from './markup.ts';
import { number, STATUS_MARK, type EvidenceLine, type Item, type Results } from './results.ts';
import { commandLine } from './text.ts';
import { TIMELINE_STYLE } from './timeline.ts';
import { WALK_PICTURE_STYLE } from './walk-picture.ts';

const LONGEST_TEXT = 8_000;
const MOST_FAILURES = 20;
const OPEN_AT_FIRST: ReadonlySet<Status> = new Set(['fail', 'error', 'warn']);

export const statusChip = (status: Status): Markup =>
  markup`<span class="chip ${status}"><span aria-hidden="true">${STATUS_MARK[status]}</span> ${status}</span>`;

/** A command with a copy button, which the script shows if copying works. */
export const command = (text: string, name: string): Markup =>
  markup`<div class="command"><code tabindex="0">${commandLine(text)}</code><button type="button" class="copy" aria-label="Copy ${name}" hidden>Copy</button></div>`;

/** One labelled piece of evidence. */
export function evidenceRow({ label, texts, kind, picture }: EvidenceLine): Markup {
  const cut = texts.map((text) => clip(text, LONGEST_TEXT));
  const content =
    picture ??
    (kind === 'command'
      ? cut.map((text) => command(text, label))
      : kind !== 'words' || label === 'case'
        ? markup`<pre tabindex="0">${cut.join('\n')}</pre>`
        : cut.length > 1
          ? markup`<ol>${cut.map((text) => markup`<li>${prose(text)}</li>`)}</ol>`
          : markup`<p>${cut.map(prose)}</p>`);
  return markup`<dt>${label}</dt><dd>${content}</dd>`;
}

export function itemHtml({ files }: Results, item: Item): Markup {
  const { id, section, status, level, title, asides, blocks } = item;
  const left = blocks.length - MOST_FAILURES;
  return markup`<details class="requirement" id="${id}" data-status="${status}" data-section="${section}" data-class="${item.class}"${
    OPEN_AT_FIRST.has(status) && markup` open`
  }>
<summary>${statusChip(status)}<h4 class="id">${id}</h4><span class="title">${prose(title)}</span></summary>
<div class="inside"><p class="muted">${[level, ...asides].join(' · ')}<span class="noprint"> · <a href="#${id}">link to this</a></span></p>
${blocks
  .slice(0, MOST_FAILURES)
  .map(
    (lines, index) =>
      markup`${blocks.length > 1 && markup`<h5>Failure ${index + 1} of ${blocks.length}</h5>`}${lines.length > 0 && markup`<dl class="evidence">${lines.map(evidenceRow)}</dl>`}`,
  )}${left > 0 && markup`<p class="muted">${number(left)} more failures are in ${files.data}.</p>`}</div>
</details>
`;
}

export const ITEM_STYLE = `${WALK_PICTURE_STYLE}${TIMELINE_STYLE}
details.requirement{border-bottom:1px solid var(--border)}
details.requirement>summary{display:grid;grid-template-columns:1rem 6.4rem 15.5rem 1fr;gap:.15rem .6rem;align-items:baseline;padding:.45rem .3rem;cursor:pointer;list-style:none}
details.requirement>summary::-webkit-details-marker{display:none}
details.requirement>summary::before{content:"▸";color:var(--muted)}
details.requirement[open]>summary::before{content:"▾"}
details.requirement>summary:hover{background:var(--surface)}
details.requirement:target>summary{box-shadow:inset 3px 0 var(--link)}
summary .chip{justify-self:start}
summary h4{font-weight:600;overflow-wrap:anywhere}
.inside{padding:.1rem 0 1.2rem 2rem;font-size:.95rem}
.inside h5{margin:1.2rem 0 .2rem;font-size:.9rem;color:var(--muted)}
.evidence{display:grid;grid-template-columns:5.5rem minmax(0,1fr);gap:.45rem 1rem;margin:.6rem 0;padding:.9rem 1rem;background:var(--surface);border-radius:8px}
.evidence dt{color:var(--muted);font-size:.86rem;padding-top:.1rem}
.evidence dd{margin:0;min-width:0}
.evidence p{margin:0}
.evidence pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;max-height:22rem;overflow-y:auto}
.evidence ol{margin:0;padding-left:1.2rem}
@media (max-width:56rem){
  details.requirement>summary{grid-template-columns:1rem 6.4rem 1fr}
  summary .title{grid-column:2/-1}
}
@media (max-width:34rem){
  .inside{padding-left:0}
  details.requirement>summary{grid-template-columns:1rem minmax(0,1fr)}
  summary h4,summary .title{grid-column:2/-1}
  .evidence{grid-template-columns:minmax(0,1fr);gap:.1rem}
  .evidence dd{margin-bottom:.6rem}
}
@media print{
  details.requirement{break-inside:avoid}
  details.requirement[open]{break-inside:auto}
  details.requirement>summary{grid-template-columns:6.2rem 15rem 1fr;font-size:.92em}
  details.requirement>summary .title{grid-column:auto}
  details.requirement>summary::before{display:none}
  .inside{padding-left:0}
  .evidence{background:none;border:1px solid var(--border);break-inside:avoid}
  .evidence pre{max-height:none}
}
`;
