/** One requirement on the report's page: a line that opens into its evidence. */
import type { Failure, Report, RequirementResult } from '../report.ts';
import { evidence, number, replayCommand, STATUS_MARK, type EvidenceLine } from './facts.ts';
import { clip, markup, prose, type Markup } from './markup.ts';
import { commandLine } from './text.ts';
import { WALK_PICTURE_STYLE, walkPictureSvg } from './walk-picture.ts';

const LONGEST_TEXT = 8_000;
const MOST_FAILURES = 20;
const OPEN_AT_FIRST = new Set(['fail', 'error']);

export const statusChip = (status: RequirementResult['status']): Markup =>
  markup`<span class="chip ${status}"><span aria-hidden="true">${STATUS_MARK[status]}</span> ${status}</span>`;

/** A command with a button that copies it; the button shows itself where it works. */
export const command = (text: string, name: string): Markup =>
  markup`<div class="command"><code tabindex="0">${commandLine(text)}</code><button type="button" class="copy" aria-label="Copy ${name}" hidden>Copy</button></div>`;

/** One labelled piece of evidence in a list of them. */
export function evidenceRow({ label, texts, kind }: EvidenceLine): Markup {
  const cut = texts.map((text) => clip(text, LONGEST_TEXT));
  const content =
    kind === 'command'
      ? cut.map((text) => command(text, label))
      : kind === 'exchange' || label === 'case'
        ? markup`<pre tabindex="0">${cut.join('\n')}</pre>`
        : cut.length > 1
          ? markup`<ol>${cut.map((text) => markup`<li>${prose(text)}</li>`)}</ol>`
          : markup`<p>${cut.map(prose)}</p>`;
  return markup`<dt>${label}</dt><dd>${content}</dd>`;
}

const failureHtml = (
  report: Report,
  result: RequirementResult,
  failure: Failure,
  index: number,
  shared: boolean,
): Markup => {
  // The hints and the replay command are the same for every failure of a requirement: once is enough.
  const lines = evidence(report, result, failure).filter(
    ({ label }) => label !== 'pages' && (!shared || (label !== 'look at' && label !== 'replay')),
  );
  const id = `walk-${result.id}-${index}`;
  const picture = failure.picture && markup`<dt>pages</dt><dd>${walkPictureSvg(failure.picture, id)}</dd>`;
  return markup`${result.failures.length > 1 && markup`<h5>Failure ${index + 1} of ${result.failures.length}</h5>`}<dl class="evidence">${lines.map((line) => [evidenceRow(line), line.label === 'answer' && picture])}</dl>`;
};

function body(report: Report, result: RequirementResult): Markup {
  const { failures, reason, status } = result;
  if (failures.length > 0) {
    const left = failures.length - MOST_FAILURES;
    return markup`${failures.slice(0, MOST_FAILURES).map((failure, i) => failureHtml(report, result, failure, i, i > 0))}${
      left > 0 && markup`<p class="muted">${number(left)} more failures stand in report.json.</p>`
    }`;
  }
  const lines: readonly EvidenceLine[] = [
    { label: status === 'error' ? 'kit error' : 'reason', texts: reason ? [reason] : [], kind: 'words' },
    { label: 'replay', texts: [replayCommand(report, result.id)], kind: 'command' },
  ];
  return markup`<dl class="evidence">${lines.filter(({ texts }) => texts.length > 0).map(evidenceRow)}</dl>`;
}

export function requirementHtml(report: Report, result: RequirementResult): Markup {
  const { id, section, status, level, title, checks } = result;
  return markup`<details class="requirement" id="${id}" data-status="${status}" data-section="${section}" data-class="${result.class}"${
    OPEN_AT_FIRST.has(status) && markup` open`
  }>
<summary>${statusChip(status)}<h4 class="id">${id}</h4><span class="title">${prose(title)}</span></summary>
<div class="inside"><p class="muted">${level} · class ${result.class} · held against ${number(checks)} ${checks === 1 ? 'answer' : 'answers'}<span class="noprint"> · <a href="#${id}">link to this</a></span></p>
${body(report, result)}</div>
</details>
`;
}

export const REQUIREMENT_STYLE = `${WALK_PICTURE_STYLE}
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
