/** report.html: the report as one page that needs no other file, for reading, sending on and printing. */
import type { Report, RequirementResult } from '../report.ts';
import {
  changesText,
  classes,
  counts,
  countWord,
  countsText,
  durationText,
  nameInWords,
  notLookedAtTexts,
  number,
  ofStatus,
  reachText,
  sections,
  selected,
  selectedText,
  selectionText,
  STATUS_MARK,
  STATUSES,
  untestedByReason,
  VERDICT_STATUS,
  VERDICT_WORD,
} from './facts.ts';
import { clip, markup, prose, type Markup } from './markup.ts';
import { causesOf } from './causes.ts';
import { command, evidenceRow, REQUIREMENT_STYLE, requirementHtml, statusChip } from './requirement-html.ts';
import { SCRIPT } from './script.ts';
import { page } from './style.ts';

const LONGEST_TEXT = 2_000;

const facts = (entries: readonly (readonly [name: string, value: string])[]): Markup =>
  markup`<dl class="facts">${entries.map(
    ([name, value]) => markup`<div><dt>${name}</dt><dd>${clip(value, LONGEST_TEXT)}</dd></div>`,
  )}</dl>`;

function bar(report: Report): Markup {
  const results = selected(report);
  const counted = counts(results);
  let x = 0;
  const pieces = [...STATUSES].reverse().map((status) => {
    const piece = markup`<rect class="${status}" x="${x}" width="${counted[status]}" height="1"/>`;
    x += counted[status];
    return piece;
  });
  return markup`<svg class="bar" viewBox="0 0 ${x} 1" preserveAspectRatio="none" role="img" aria-label="${countsText(results)}">${pieces}</svg>
<ul class="tally">${STATUSES.filter((status) => counted[status] > 0).map(
    (status) =>
      markup`<li class="${status}"><span aria-hidden="true">${STATUS_MARK[status]}</span> <strong>${counted[status]}</strong> ${countWord(status, counted[status])}</li>`,
  )}<li class="muted">${selectedText(report)}</li></ul>`;
}

function changed(report: Report): Markup | undefined {
  const entries = changesText(report);
  return entries.length === 0
    ? undefined
    : markup`<section class="changed" aria-labelledby="changed"><h2 id="changed">What changed</h2>${facts(entries)}</section>`;
}

function causes(report: Report): Markup | undefined {
  const entries = causesOf(report);
  return entries.length === 0
    ? undefined
    : markup`<section class="causes" aria-labelledby="causes"><h2 id="causes">By cause</h2>${entries.map(
        ({ root, title, lines }) =>
          markup`<article><h3><a class="id" href="#${root}">${root}</a> ${prose(title)}</h3><dl class="evidence">${lines.map(evidenceRow)}</dl></article>`,
      )}</section>`;
}

function header(report: Report): Markup {
  const { target, kit, verdict } = report;
  return markup`<header>
<p class="overline">Screenings Retrieval Service · conformance report</p>
<h1>${clip(target.name, 200)}</h1>
<p><span class="badge ${VERDICT_STATUS[verdict]}">${VERDICT_WORD[verdict]}</span></p>
<p class="lead">${prose(clip(report.summary, LONGEST_TEXT))}</p>
${report.basis !== undefined && markup`<p class="note"><strong>Basis:</strong> ${clip(report.basis, LONGEST_TEXT)}</p>`}
${report.selection && markup`<p class="note">${clip(selectionText(report) ?? '', LONGEST_TEXT)}</p>`}
${causes(report)}
${bar(report)}
${changed(report)}
${facts([
  ['API', target.baseUrl],
  ['Token endpoint', target.authUrl],
  ['Started', report.startedAt],
  ['Duration', durationText(report.durationMs)],
  ['Requests', number(report.requests)],
  ['Seed', String(report.seed)],
  ['Kit', `${kit.name} ${kit.version}`],
])}
</header>`;
}

const listed = (title: string, results: readonly RequirementResult[]): Markup | undefined =>
  results.length === 0
    ? undefined
    : markup`<h3>${title}</h3><ul class="listed">${results.map(
        ({ id, title: holds, failures, reason }) =>
          markup`<li><a class="id" href="#${id}">${id}</a> <span>${prose(holds)}<br><span class="muted">${prose(clip(failures[0]?.message ?? reason ?? '', 300))}</span></span></li>`,
      )}</ul>`;

function attention(report: Report): Markup | undefined {
  const untested = untestedByReason(report);
  const parts = [
    listed('Failed', ofStatus(report, 'fail')),
    listed('Errors of the kit, not of the target', ofStatus(report, 'error')),
    listed('Warnings', ofStatus(report, 'warn')),
    untested.length > 0 &&
      markup`<h3>Untested, and what to supply</h3><ul class="listed">${untested.map(
        ({ reason, ids }) =>
          markup`<li><span>${prose(clip(reason, LONGEST_TEXT))}<br>${ids.map((id) => markup`<a class="id" href="#${id}">${id}</a> `)}</span></li>`,
      )}</ul>`,
  ].filter(Boolean);
  return parts.length > 0
    ? markup`<section aria-labelledby="attention"><h2 id="attention">What needs attention</h2>${parts}</section>`
    : undefined;
}

const classState = { exercised: 'pass', partly: 'warn', untested: 'untested' } as const;

const coverage = (report: Report): Markup => markup`<section aria-labelledby="classes">
<h2 id="classes">Classes exercised</h2>
<div class="scroll" role="region" tabindex="0" aria-labelledby="classes"><table><thead><tr><th scope="col">Class</th><th scope="col">State</th><th scope="col">Requirements</th></tr></thead>
<tbody>${classes(report).map(
  (entry) =>
    markup`<tr><th scope="row">${entry.name}</th><td class="${classState[entry.state]}">${entry.state}</td><td>${entry.counts}</td></tr>`,
)}</tbody></table></div>
</section>`;

function filters(report: Report): Markup {
  const counted = counts(selected(report));
  const options = (label: string, name: string, values: readonly (readonly [string, string])[]) =>
    markup`<label>${label} <select name="${name}"><option value="">all</option>${values.map(
      ([value, text]) => markup`<option value="${value}">${text}</option>`,
    )}</select></label>`;
  return markup`<form id="filters" class="noprint" hidden>
<fieldset><legend>Status</legend>${STATUSES.map(
    (status) =>
      markup`<label><input type="checkbox" name="status" value="${status}" checked> ${statusChip(status)} ${counted[status]}</label>`,
  )}</fieldset>
<p>${options(
    'Section',
    'section',
    sections(selected(report)).map(({ name, title }) => [name, `${name} ${title}`]),
  )}
${options(
  'Class',
  'class',
  classes(report).map(({ name }) => [name, name]),
)}
<label>Text <input type="search" name="text" size="16" autocomplete="off"></label>
<button type="reset">Reset</button> <button type="button" id="open-all">Open all</button> <button type="button" id="close-all">Close all</button></p>
<p id="shown" class="muted" role="status"></p>
</form>`;
}

const requirements = (report: Report): Markup => markup`<section aria-labelledby="requirements">
<h2 id="requirements">Requirements</h2>
<nav class="noprint" aria-label="Sections"><ul class="tally">${sections(selected(report)).map(
  ({ name, title }) => markup`<li><a href="#section-${name}">${name} ${title}</a></li>`,
)}</ul></nav>
${filters(report)}
${sections(selected(report)).map(
  ({ name, title, results }) => markup`<section class="group" aria-labelledby="section-${name}">
<h3 id="section-${name}">${name} ${title} <span class="muted">${countsText(results)}</span></h3>
${results.map((result) => requirementHtml(report, result))}</section>
`,
)}</section>`;

const observations = (report: Report): Markup | undefined =>
  report.observations.length === 0
    ? undefined
    : markup`<section aria-labelledby="observations">
<h2 id="observations">Where the specification leaves it open</h2>
<p class="muted">What was seen there; none of it counts for or against the verdict.</p>
<div class="scroll" role="region" tabindex="0" aria-labelledby="observations"><table><thead><tr><th scope="col">Topic</th><th scope="col">Question</th><th scope="col">Seen</th></tr></thead>
<tbody>${report.observations.map(
        ({ topic, question, seen }) =>
          markup`<tr><th scope="row" class="id">${clip(topic, 200)}</th><td>${prose(clip(question, LONGEST_TEXT))}</td><td>${clip(seen.join(' · ') || 'not seen', LONGEST_TEXT)}</td></tr>`,
      )}</tbody></table></div>
</section>`;

const numbers = (title: string, values: Readonly<Record<string, number>>): Markup | undefined =>
  Object.keys(values).length === 0
    ? undefined
    : markup`<div><table><thead><tr><th scope="col">${title}</th><th scope="col" class="number">Number</th></tr></thead><tbody>${Object.entries(
        values,
      ).map(
        ([name, value]) =>
          markup`<tr><td class="name">${clip(nameInWords(name), 200)}</td><td class="number">${number(value)}</td></tr>`,
      )}</tbody></table></div>`;

const ground = (report: Report): Markup => markup`<section aria-labelledby="evidence">
<h2 id="evidence">What the verdict rests on</h2>
<p>${number(report.evidence.executed)} of ${number(report.evidence.planned)} planned checks were executed.</p>
<p>How far it went: ${reachText(report)}.</p>${(report.notes ?? []).map(
  (note) => markup`
<p>Note: ${prose(clip(note, LONGEST_TEXT))}</p>`,
)}
<div class="columns">${numbers('Seen in the run', report.evidence.seen)}${numbers('Cases by law', report.evidence.laws)}</div>
${
  report.evidence.notLookedAt.length > 0 &&
  markup`<details><summary>Circumstances, alone or in pairs, in which rules were not asked</summary><ul>${notLookedAtTexts(report).map((text) => markup`<li>${text}</li>`)}</ul></details>`
}
</section>
<section aria-labelledby="again"><h2 id="again">Again</h2>
<p>The same run, with the same random cases:</p>${command(report.replay, 'the replay command')}
${
  report.tokenCommands.length > 0 &&
  markup`<p>What fetches the tokens that the curl commands need:</p>${report.tokenCommands.map((one) => command(one, 'the token command'))}`
}</section>`;

const STYLE = `
.name{overflow-wrap:anywhere}
#filters{margin:1rem 0;padding:.8rem 1rem;border:1px solid var(--border);border-radius:8px;background:var(--surface)}
#filters p{margin:.5rem 0 0}
fieldset{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;border:0;margin:0;padding:0}
legend{float:left;margin-right:1.2rem}
#filters label{white-space:nowrap;margin-right:.6rem}
.changed .facts dd{font-weight:600}
.causes article{margin:1rem 0;padding:.2rem 1rem .8rem;border:1px solid var(--border);border-left:4px solid var(--fail);border-radius:8px;background:var(--surface)}
.causes h3{font-weight:400;font-size:1rem}
.listed{margin:0;padding:0;list-style:none}
.listed li{display:grid;grid-template-columns:17rem minmax(0,1fr);gap:.1rem .8rem;padding:.4rem 0;border-bottom:1px solid var(--border);overflow-wrap:anywhere}
.listed li>span:first-child{grid-column:1/-1}
h3 .muted{font-weight:400;font-size:.86rem}
footer{margin-top:3rem;color:var(--muted);font-size:.88rem}
@media (max-width:44rem){.listed li{grid-template-columns:minmax(0,1fr)}}
@media print{.listed li,tr{break-inside:avoid}}
${REQUIREMENT_STYLE}`;

export function html(report: Report): string {
  return page({
    title: `${VERDICT_WORD[report.verdict]}: ${clip(report.target.name, 200)}`,
    status: VERDICT_STATUS[report.verdict],
    style: STYLE,
    script: SCRIPT,
    body: markup`<a class="skip" href="#requirements">Skip to the requirements</a>
${header(report)}
<main>
${attention(report)}
${coverage(report)}
${requirements(report)}
${observations(report)}
${ground(report)}
</main>
<footer><p>The same facts as data: report.json. An untested requirement is never a pass, and a warning never changes the verdict.</p></footer>`,
  });
}
