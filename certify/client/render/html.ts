/** client.html: the report as one page that needs no other file. */
import {
  counts,
  countsText,
  countWord,
  durationText,
  STATUS_MARK,
  STATUSES,
  VERDICT_STATUS,
  VERDICT_WORD,
} from '../../render/facts.ts';
import { clip, markup, prose, type Markup } from '../../render/markup.ts';
import { evidenceRow, REQUIREMENT_STYLE, statusChip } from '../../render/requirement-html.ts';
import { page } from '../../render/style.ts';
import type { ClientReport, SituationResult } from '../report.ts';
import { timeline, TIMELINE_STYLE } from './timeline.ts';
import { linesOf, selectionText } from './words.ts';

const LONGEST_TEXT = 4_000;

function header(report: ClientReport): Markup {
  const { verdict, kit, situations } = report;
  const counted = counts(situations);
  const facts = [
    ['Situations', countsText(situations)],
    ['Started', report.startedAt],
    ['Duration', durationText(report.durationMs)],
    ['Kit', `${kit.name} ${kit.version}`],
  ] as const;
  return markup`<header>
<p class="overline">Screenings Retrieval Service · report on a client</p>
<h1>${clip(report.client, 200)}</h1>
<p><span class="badge ${VERDICT_STATUS[verdict]}">${VERDICT_WORD[verdict]}</span></p>
<p class="lead">${prose(clip(report.summary, LONGEST_TEXT))}</p>
${selectionText(report) !== undefined && markup`<p class="note">${clip(selectionText(report) ?? '', LONGEST_TEXT)}</p>`}
<ul class="tally">${STATUSES.filter((status) => counted[status] > 0).map(
    (status) =>
      markup`<li class="${status}"><span aria-hidden="true">${STATUS_MARK[status]}</span> <strong>${counted[status]}</strong> ${countWord(status, counted[status])}</li>`,
  )}<li class="muted">of ${situations.length} situations</li></ul>
<dl class="facts">${facts.map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
</header>`;
}

const OPEN_AT_FIRST = new Set(['fail', 'error', 'warn']);

function situation(result: SituationResult): Markup {
  const { name, status, level, section, title, failures, reason, lookAt } = result;
  const rows = [
    ...failures.flatMap(linesOf),
    ...(failures.length > 0 ? [{ label: 'look at', texts: lookAt, kind: 'words' } as const] : []),
    ...(reason
      ? [{ label: status === 'error' ? 'kit error' : 'note', texts: [reason], kind: 'words' } as const]
      : []),
  ];
  return markup`<details class="requirement" id="${name}"${OPEN_AT_FIRST.has(status) && markup` open`}>
<summary>${statusChip(status)}<h3 class="id">${name}</h3><span class="title">${prose(title)}</span></summary>
<div class="inside"><p class="muted">${level} · section ${section}${result.durationMs > 0 && ` · ${durationText(result.durationMs)}`}</p>
${rows.length > 0 && markup`<dl class="evidence">${rows.map(evidenceRow)}</dl>`}
${result.timeline && markup`<div class="scroll">${timeline(result.timeline)}</div>`}</div>
</details>
`;
}

const STYLE = `
summary h3{font-size:1em;margin:0;font-weight:600;overflow-wrap:anywhere}
@media (max-width:34rem){summary h3{grid-column:2/-1}}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.4rem 0 1rem;padding:0;list-style:none;font-size:.9rem}
footer{margin-top:3rem;color:var(--muted);font-size:.88rem}
${REQUIREMENT_STYLE}${TIMELINE_STYLE}`;

export function html(report: ClientReport): string {
  return page({
    title: `${VERDICT_WORD[report.verdict]}: ${clip(report.client, 200)}`,
    status: VERDICT_STATUS[report.verdict],
    style: STYLE,
    body: markup`<a class="skip" href="#situations">Skip to the situations</a>
${header(report)}
<main>
<section aria-labelledby="situations">
<h2 id="situations">Situations</h2>
<p class="muted">In each picture a bar is a request of the client, as long as its answer took: a gap is a wait.</p>
<ul class="key"><li class="pass">low bar: answered well</li><li class="warn">middle: 401 or 429</li><li class="fail">tall: refused, failed or broken off</li></ul>
${report.situations.map(situation)}
</section>
</main>
<footer><p>The same facts as data: client.json. What a client could not show is untested, never a pass; a warning never changes the verdict.</p></footer>`,
  });
}
