/** Renders the report as a single self-contained page, for reading, sending and printing. */
import type { Status } from '../report/report.ts';
import { clip, markup, prose, type Markup } from './markup.ts';
import {
  counts,
  countsText,
  countWord,
  durationText,
  factsOf,
  ofStatus,
  sections,
  SHOWN,
  STATUSES,
  untestedByReason,
  VERDICT,
  several,
  pastable,
} from './results.ts';
import type { Cause, Entry, Results, Table, EvidenceLine, Item } from './results.ts';
import { page, textOf } from './style.ts';

const LONGEST_TEXT = 2_000;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const facts = (entries: readonly Entry[]): Markup =>
  markup`<dl class="facts">${entries.map(
    ([name, value]) =>
      markup`<div><dt>${capital(name)}</dt><dd>${prose(clip(value, LONGEST_TEXT))}</dd></div>`,
  )}</dl>`;

function bar({ items, reach }: Results): Markup {
  const counted = counts(items);
  let x = 0;
  const pieces = [...STATUSES].reverse().map((status) => {
    const piece = markup`<rect class="${status}" x="${x}" width="${counted[status]}" height="1"/>`;
    x += counted[status];
    return piece;
  });
  return markup`<svg class="bar" viewBox="0 0 ${x} 1" preserveAspectRatio="none" role="img" aria-label="${countsText(items)}">${pieces}</svg>
<ul class="tally">${STATUSES.filter((status) => counted[status] > 0).map(
    (status) =>
      markup`<li class="${status}"><span aria-hidden="true">${SHOWN[status].mark}</span> <strong>${counted[status]}</strong> ${countWord(status, counted[status])}</li>`,
  )}<li class="muted">${reach}</li></ul>`;
}

/** A section of the page with a heading; undefined if it is empty. */
const part = (id: string, title: string, content: Markup | readonly Markup[]): Markup | undefined =>
  Array.isArray(content) && content.length === 0
    ? undefined
    : markup`<section class="${id}" aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${content}</section>
`;

const causeHtml = ({ root, title, lines }: Cause): Markup =>
  markup`<article><h3><a class="id" href="#${root}">${root}</a> ${prose(title)}</h3><dl class="evidence">${lines.map(evidenceRow)}</dl></article>`;

function header(results: Results): Markup {
  const { kind, title, kit, verdict, causes, changes } = results;
  return markup`<header>
<p class="overline">Screenings Retrieval Service · ${kind}</p>
<h1>${clip(title, 200)}</h1>
<p><span class="badge ${VERDICT[verdict].status}">${VERDICT[verdict].word}</span></p>
<p class="lead">${prose(clip(results.summary, LONGEST_TEXT))}</p>
${results.remarks.map(([name, text]) => markup`<p class="note"><strong>${capital(name)}:</strong> ${clip(text, LONGEST_TEXT)}</p>`)}
${part('causes', 'By cause', causes.map(causeHtml))}
${bar(results)}
${part('changed', 'What changed', changes.length === 0 ? [] : facts(changes))}
${facts([
  ...factsOf(results, 'html'),
  ['started', results.startedAt],
  ['duration', durationText(results.durationMs)],
  ['kit', `${kit.name} ${kit.version}`],
])}
</header>`;
}

function attention(results: Results): Markup | undefined {
  const listed = (status: Status, title: string): Markup[] => {
    const items = ofStatus(results, status).map(
      ({ id, title: holds, message }) =>
        markup`<li><a class="id" href="#${id}">${id}</a> <span>${prose(holds)}<br><span class="muted">${prose(clip(message, 300))}</span></span></li>`,
    );
    return items.length === 0 ? [] : [markup`<h3>${title}</h3><ul class="listed">${items}</ul>`];
  };
  const untested = untestedByReason(results).map(
    ({ reason, ids }) =>
      markup`<li><span>${prose(clip(reason, LONGEST_TEXT))}<br>${ids.map((id) => markup`<a class="id" href="#${id}">${id}</a> `)}</span></li>`,
  );
  return part('attention', 'What needs attention', [
    ...listed('fail', 'Failed'),
    ...listed('error', 'Errors of the kit, not of what it certified'),
    ...listed('warn', 'Warnings'),
    ...(untested.length > 0
      ? [markup`<h3>Untested, and what to supply</h3><ul class="listed">${untested}</ul>`]
      : []),
  ]);
}

const isNumber = (text: string): boolean => /^[\d,.]+$/.test(text);

export function table({ title, about, head, rows, place }: Table): Markup | undefined {
  if (rows.length === 0) return undefined;
  const id = title.toLowerCase().replace(/\W+/g, '-');
  const cell = (value: Table['rows'][number][number]): Markup =>
    typeof value === 'string'
      ? markup`<td${isNumber(value) && markup` class="number"`}>${prose(clip(value, LONGEST_TEXT))}</td>`
      : markup`<td class="${value[1]}">${value[0]}</td>`;
  const content = markup`<div class="scroll" role="region" tabindex="0" aria-label="${title}"><table><thead><tr>${head.map((name) => markup`<th scope="col"${name === 'Number' && markup` class="number"`}>${name}</th>`)}</tr></thead>
<tbody>${rows.map(([name, ...cells]) => markup`<tr><th scope="row" class="name">${clip(String(name), LONGEST_TEXT)}</th>${cells.map(cell)}</tr>`)}</tbody></table></div>`;
  return place === 'folded'
    ? markup`<details><summary>${title}</summary>${content}</details>`
    : part(id, title, [...(about === undefined ? [] : [markup`<p class="muted">${about}</p>`]), content]);
}

function filters({ items, noun }: Results): Markup {
  const counted = counts(items);
  const options = (label: string, name: string, values: readonly Entry[]) =>
    markup`<label${values.length === 0 && markup` hidden`}>${label} <select name="${name}"><option value="">all</option>${values.map(
      ([value, text]) => markup`<option value="${value}">${text}</option>`,
    )}</select></label>`;
  const bySection = sections(items).map(({ name, title }): Entry => [name, `${name} ${title}`]);
  const byClass = [...new Set(items.flatMap((item) => item.class ?? []))].map((name): Entry => [name, name]);
  return markup`<form id="filters" class="noprint" hidden>
<fieldset><legend>Status</legend>${STATUSES.map(
    (status) =>
      markup`<label><input type="checkbox" name="status" value="${status}" checked> ${statusChip(status)} ${counted[status]}</label>`,
  )}</fieldset>
<p>${options('Section', 'section', bySection)}
${options('Class', 'class', byClass)}
<label>Text <input type="search" name="text" size="16" autocomplete="off"></label>
<button type="reset">Reset</button> <button type="button" id="open-all">Open all</button> <button type="button" id="close-all">Close all</button></p>
<p id="shown" class="muted" role="status" data-noun="${noun}s"></p>
</form>`;
}

const items = (results: Results): Markup | undefined =>
  part(
    'items',
    capital(`${results.noun}s`),
    markup`${results.legend}
<nav class="noprint" aria-label="Sections"><ul class="tally">${sections(results.items).map(
      ({ name, title }) => markup`<li><a href="#section-${name}">${name} ${title}</a></li>`,
    )}</ul></nav>
${filters(results)}
${sections(results.items).map(
  ({ name, title, items: own }) => markup`<section class="group" aria-labelledby="section-${name}">
<h3 id="section-${name}">${name} ${title} <span class="muted">${countsText(own)}</span></h3>
${own.map((item) => itemHtml(results, item))}</section>
`,
)}`,
  );

const again = ({ replay, tokenCommands }: Results): Markup | undefined =>
  replay === undefined
    ? undefined
    : part('again', 'Again', [
        markup`<p>The same run, with the same random cases:</p>${command(replay, 'the replay command')}`,
        ...(tokenCommands.length > 0
          ? [
              markup`<p>These commands fetch the tokens for the curl commands:</p>${tokenCommands.map((one) => command(one, 'the token command'))}`,
            ]
          : []),
      ]);

// -- one item: a summary line that opens to its evidence -------------------------------------------

const LONGEST_EVIDENCE = 8_000;
const MOST_FAILURES = 20;
const OPEN_AT_FIRST: ReadonlySet<Status> = new Set(['fail', 'error', 'warn']);

const statusChip = (status: Status): Markup =>
  markup`<span class="chip ${status}"><span aria-hidden="true">${SHOWN[status].mark}</span> ${status}</span>`;

/** A command with a copy button, which the script shows if copying works. */
const command = (text: string, name: string): Markup =>
  markup`<div class="command"><code tabindex="0">${pastable(text)}</code><button type="button" class="copy" aria-label="Copy ${name}" hidden>Copy</button></div>`;

function evidenceRow({ label, texts, kind, picture }: EvidenceLine): Markup {
  const cut = texts.map((text) => clip(text, LONGEST_EVIDENCE));
  const content =
    picture ??
    (kind === 'command'
      ? cut.map((text) => command(text, label))
      : kind !== 'words'
        ? markup`<pre tabindex="0">${cut.join('\n')}</pre>`
        : cut.length > 1
          ? markup`<ol>${cut.map((text) => markup`<li>${prose(text)}</li>`)}</ol>`
          : markup`<p>${cut.map(prose)}</p>`);
  return markup`<dt>${label}</dt><dd>${content}</dd>`;
}

function itemHtml({ files }: Results, item: Item): Markup {
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
  )}${left > 0 && markup`<p class="muted">${several(left, 'failure')} more in ${files.data}.</p>`}</div>
</details>
`;
}

// -- the page -------------------------------------------------------------------------------------

export function html(results: Results): string {
  const { verdict, tables, noun, files } = results;
  return page({
    title: `${VERDICT[verdict].word}: ${clip(results.title, 200)}`,
    status: VERDICT[verdict].status,
    style: textOf('report.css'),
    script: textOf('report.js'),
    body: markup`<a class="skip" href="#items">Skip to the ${noun}s</a>
${header(results)}
<main>
${attention(results)}
${tables.filter(({ place }) => place === 'first').map(table)}
${items(results)}
${tables.filter(({ place }) => place !== 'first').map(table)}
${again(results)}
</main>
<footer><p>The same facts as data: ${files.data}. An untested ${noun} never counts as passed, and a warning never changes the verdict.</p></footer>`,
  });
}
