/** summary.md: the report for the summary page of a CI job. */
import type { Report, RequirementResult } from '../report.ts';
import {
  changesText,
  classes,
  countsText,
  durationText,
  evidence,
  number,
  numbersText,
  ofStatus,
  reachText,
  selected,
  selectedText,
  selectionText,
  STATUS_MARK,
  untestedByReason,
  VERDICT_STATUS,
  VERDICT_WORD,
} from './facts.ts';
import { causesOf } from './causes.ts';
import { clip, escape, oneLine } from './markup.ts';
import { labelled } from './text.ts';

const MOST_FAILURES = 30;
const WIDTH = 100;

/** Text within a line of Markdown: nothing in it is markup, a link, a mention or the end of a table cell. */
const inline = (text: string, limit: number): string =>
  clip(oneLine(text), limit).replace(/:\/\/|www\.|[\\`*_[\]|~$<>&"'@]/gi, (found) => {
    if (found === '://') return '&#58;//';
    if (found.length > 1) return `${found.slice(0, -1)}&#46;`;
    if (found === '@') return '&#64;';
    return '<>&"\''.includes(found) ? escape(found) : `\\${found}`;
  });

/** The same where a line may begin with it: no heading, no list. */
const words = (text: string, limit = 500): string =>
  inline(text, limit).replace(/^(?:\d+(?=[.)])|(?=[#+=-]))/, '$&\\');

/** Code in running Markdown. HTML rather than backticks, which a table cell or the text itself could end. */
const code = (text: string, limit = 500): string => `<code>${inline(text, limit)}</code>`;

/** A sentence in which `code` stands between backticks. */
const prose = (text: string): string =>
  clip(oneLine(text), 500)
    .split(/`([^`]+)`/)
    .map((piece, index) => (index % 2 ? code(piece) : spaced(piece)))
    .join('');

/** `words` that keep the space at either end. */
const spaced = (piece: string): string => piece.replace(/\S(?:[^]*\S)?/, (inner) => words(inner));

/** A block of code whose fence is longer than any within. */
function block(lines: readonly string[]): string {
  const text = lines.join('\n');
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

function broken(report: Report, result: RequirementResult): string {
  const [smallest] = result.failures;
  const lines = smallest ? evidence(report, result, smallest) : [];
  const more = result.failures.length - 1;
  return [
    `### ${STATUS_MARK[result.status]} ${code(result.id)} ${result.level}`,
    prose(result.title),
    ...(lines.length > 0 ? [block(lines.flatMap((line) => labelled(line, WIDTH)))] : []),
    ...(more > 0 ? [`and ${number(more)} more in report.html`] : []),
  ].join('\n\n');
}

function brokenSection(report: Report, title: string, results: readonly RequirementResult[]): string[] {
  if (results.length === 0) return [];
  const left = results.length - MOST_FAILURES;
  return [
    `## ${title}`,
    ...results.slice(0, MOST_FAILURES).map((result) => broken(report, result)),
    ...(left > 0 ? [`${left} more requirements are listed in report.html.`] : []),
  ];
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** A heading and a line each; nothing where there are none. */
const listed = (
  title: string,
  entries: readonly (readonly [label: string, text: string])[],
): string | false =>
  entries.length > 0 &&
  [`## ${title}`, entries.map(([label, text]) => `- **${words(label)}**: ${words(text)}`).join('\n')].join(
    '\n\n',
  );

function causesSection(report: Report): string | false {
  const causes = causesOf(report).map(({ root, title, lines }) =>
    [`### ${code(root)}`, prose(title), block(lines.flatMap((line) => labelled(line, WIDTH)))].join('\n\n'),
  );
  return causes.length > 0 && ['## By cause', ...causes].join('\n\n');
}

export function summary(report: Report): string {
  const untested = untestedByReason(report).map(
    ({ reason, ids }) => `- ${prose(reason)}: ${ids.map((id) => code(id)).join(' ')}`,
  );
  const mark = STATUS_MARK[VERDICT_STATUS[report.verdict]];
  const parts: readonly (string | false | undefined)[] = [
    `# ${mark} ${VERDICT_WORD[report.verdict]}: ${words(report.target.name)}`,
    words(report.summary, 2000),
    report.basis && `> ${words(report.basis, 2000)}`,
    report.selection && `> ${words(selectionText(report) ?? '', 2000)}`,
    causesSection(report),
    table(
      ['', ''],
      [
        ['Verdict', `**${report.verdict}**`],
        ['Requirements', `${countsText(selected(report))} (${selectedText(report)})`],
        ['API', code(report.target.baseUrl)],
        ['Token endpoint', code(report.target.authUrl)],
        [
          'Run',
          `${number(report.requests)} requests in ${durationText(report.durationMs)}, seed ${report.seed}`,
        ],
        [
          'Checks',
          `${number(report.evidence.executed)} of ${number(report.evidence.planned)} planned executed`,
        ],
        ['Reach', words(reachText(report))],
        ['Seen', words(numbersText(report.evidence.seen)) || 'nothing'],
        ['Cases by law', words(numbersText(report.evidence.laws), 2000) || 'none'],
        ...(report.notes ?? []).map((note) => ['Note', words(note)]),
        ['Started', words(report.startedAt)],
        ['Kit', words(`${report.kit.name} ${report.kit.version}`)],
      ],
    ),
    listed('What changed', changesText(report)),
    table(
      ['Class', 'State', 'Requirements'],
      classes(report).map(({ name, state, counts }) => [name, state, counts]),
    ),
    ...brokenSection(report, 'Failed', ofStatus(report, 'fail')),
    ...ofStatus(report, 'error').map((result, index) =>
      [
        ...(index ? [] : ['## Errors of the kit']),
        `- ${code(result.id)}: ${words(result.reason ?? '')}`,
      ].join('\n\n'),
    ),
    ...brokenSection(report, 'Warnings', ofStatus(report, 'warn')),
    ...(untested.length > 0 ? ['## Untested, and what to supply', untested.join('\n')] : []),
    '## Again',
    block([
      ...labelled({ label: 'replay', texts: [report.replay], kind: 'command' }, WIDTH),
      ...(report.tokenCommands.length > 0
        ? labelled({ label: 'token', texts: report.tokenCommands, kind: 'command' }, WIDTH)
        : []),
    ]),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}
