/** Renders the report in Markdown, for the summary page of a CI job. */
import { clip, escape, oneLine } from './markup.ts';
import {
  commands,
  countsText,
  durationText,
  factsOf,
  number,
  ofStatus,
  several,
  SHOWN,
  untestedByReason,
  VERDICT,
  labelled,
} from './results.ts';
import type { Entry, EvidenceLine, Item, Results } from './results.ts';

const MOST_FAILURES = 30;
const WIDTH = 100;

/** Escapes text inside a line of Markdown: no markup, links, mentions or table separators. */
const inline = (text: string, limit: number): string =>
  clip(oneLine(text), limit).replace(/:\/\/|www\.|[\\`*_[\]|~$<>&"'@]/gi, (found) => {
    if (found === '://') return '&#58;//';
    if (found.length > 1) return `${found.slice(0, -1)}&#46;`;
    if (found === '@') return '&#64;';
    return '<>&"\''.includes(found) ? escape(found) : `\\${found}`;
  });

/** The same for text at the start of a line: no headings or lists. */
const words = (text: string, limit = 500): string =>
  inline(text, limit).replace(/^(?:\d+(?=[.)])|(?=[#+=-]))/, '$&\\');

/** Inline code as HTML, because a table cell or the text itself could end backticks. */
const code = (text: string): string => `<code>${inline(text, 500)}</code>`;

/** Renders a sentence with `code` between backticks. */
const prose = (text: string): string =>
  clip(oneLine(text), 500)
    .split(/`([^`]+)`/)
    // Between code, the space around words is kept.
    .map((piece, index) =>
      index % 2 ? code(piece) : piece.replace(/\S(?:[^]*\S)?/, (inner) => words(inner)),
    )
    .join('');

/** A code block with a fence longer than any in the text. */
function block(lines: readonly string[]): string {
  const text = lines.join('\n');
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

const evidence = (lines: readonly EvidenceLine[]): string =>
  block(lines.flatMap((line) => labelled(line, WIDTH)));

function broken({ files }: Results, { status, id, level, title, blocks }: Item): string {
  const [smallest = []] = blocks;
  return [
    `### ${SHOWN[status].mark} ${code(id)} ${level}`,
    prose(title),
    ...(smallest.length > 0 ? [evidence(smallest)] : []),
    ...(blocks.length > 1 ? [`and ${number(blocks.length - 1)} more in ${files.html}`] : []),
  ].join('\n\n');
}

function brokenSection(results: Results, title: string, items: readonly Item[]): string[] {
  if (items.length === 0) return [];
  const left = items.length - MOST_FAILURES;
  return [
    `## ${title}`,
    ...items.slice(0, MOST_FAILURES).map((item) => broken(results, item)),
    ...(left > 0 ? [`${several(left, results.noun)} more in ${results.files.html}.`] : []),
  ];
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const listed = (title: string, entries: readonly Entry[]): string | false =>
  entries.length > 0 &&
  [`## ${title}`, entries.map(([label, text]) => `- **${words(label)}**: ${words(text)}`).join('\n')].join(
    '\n\n',
  );

function causesSection({ causes }: Results): string | false {
  const texts = causes.map(({ root, title, lines }) =>
    [`### ${code(root)}`, prose(title), evidence(lines)].join('\n\n'),
  );
  return texts.length > 0 && ['## By cause', ...texts].join('\n\n');
}

export function summary(results: Results): string {
  const { verdict, kit, items } = results;
  const untested = untestedByReason(results).map(
    ({ reason, ids }) => `- ${prose(reason)}: ${ids.map((id) => code(id)).join(' ')}`,
  );
  const parts: readonly (string | false | undefined)[] = [
    `# ${SHOWN[VERDICT[verdict].status].mark} ${VERDICT[verdict].word}: ${words(results.title)}`,
    words(results.summary, 2000),
    ...results.remarks.map(([, text]) => `> ${words(text, 2000)}`),
    causesSection(results),
    table(
      ['', ''],
      [
        ['verdict', `**${verdict}**`],
        [`${results.noun}s`, `${countsText(items)} (${results.reach})`],
        ...factsOf(results, 'summary').map(([label, text]) => [label, words(text, 2000)]),
        ['duration', durationText(results.durationMs)],
        ['started', words(results.startedAt)],
        ['kit', words(`${kit.name} ${kit.version}`)],
      ],
    ),
    listed('What changed', results.changes),
    ...results.tables
      .filter(({ place }) => place === 'first')
      .map(({ head, rows }) =>
        table(
          head,
          rows.map((row) => row.map((cell) => words(typeof cell === 'string' ? cell : cell[0]))),
        ),
      ),
    ...brokenSection(results, 'Failed', ofStatus(results, 'fail')),
    ...brokenSection(results, 'Errors of the kit', ofStatus(results, 'error')),
    ...brokenSection(results, 'Warnings', ofStatus(results, 'warn')),
    ...(untested.length > 0 ? ['## Untested, and what to supply', untested.join('\n')] : []),
    ...(results.replay === undefined
      ? []
      : [
          '## Again',
          evidence([commands('replay', results.replay), commands('token', ...results.tokenCommands)]),
        ]),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}
