/** Renders the summary of a run for a terminal: failures, untested requirements, verdict. */
import pc from 'picocolors';
import { clip, oneLine } from './markup.ts';
import {
  commands,
  countsText,
  durationText,
  factsOf,
  number,
  ofStatus,
  SHOWN,
  untestedByReason,
  VERDICT,
  words,
  labelled,
  wrap,
} from './results.ts';
import type { Entry, Item, Results } from './results.ts';

interface TerminalOptions {
  /** Width of the terminal in columns: 80 if unknown, and at least 40. */
  readonly columns?: number | undefined;
  /** Default: on a terminal without NO_COLOR, or with FORCE_COLOR. */
  readonly color?: boolean;
  readonly reportPath?: string;
}

const NARROWEST = 40;
const USUAL = 80;
const WIDEST = 140;

/** No colour codes in files in CI either, where picocolors alone would write them. */
const wantsColor = (out: { readonly isTTY?: boolean }): boolean => {
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (FORCE_COLOR && FORCE_COLOR !== '0') return true;
  return !NO_COLOR && FORCE_COLOR !== '0' && out.isTTY === true && pc.isColorSupported;
};

interface Pen {
  readonly width: number;
  readonly colors: ReturnType<typeof pc.createColors>;
}

/** `id  LEVEL  title  §section`, with the title wrapped in its column. */
function heading(pen: Pen, item: Item): readonly string[] {
  const { width, colors } = pen;
  const paint = colors[SHOWN[item.status].color];
  const start = `${item.id}  ${item.level}  `;
  const section = `  §${item.section}`;
  const painted = `${paint(colors.bold(item.id))}  ${paint(item.level)}`;
  const room = width - start.length - section.length;
  if (room < 24)
    return [`${painted}${colors.dim(section)}`, ...wrap(item.title, width - 2).map((line) => `  ${line}`)];
  const [first = '', ...more] = wrap(item.title, room);
  return [
    `${painted}  ${first.padEnd(room)}${colors.dim(section)}`,
    ...more.map((line) => ' '.repeat(start.length) + line),
  ];
}

/** The smallest failure in full; the report contains the others. */
function broken(pen: Pen, item: Item): readonly string[] {
  const [smallest = [], ...others] = item.blocks;
  return [
    ...heading(pen, item),
    ...smallest.flatMap((line) => labelled(line, pen.width, pen.colors.dim)),
    ...(others.length > 0 ? [`  and ${number(others.length)} more in the report`] : []),
    '',
  ];
}

/** The report lists all of them. */
const IDS_SHOWN = 12;
const idsText = (ids: readonly string[]): string =>
  ids.length > IDS_SHOWN + 3
    ? `${ids.slice(0, IDS_SHOWN).join(' ')} and ${ids.length - IDS_SHOWN} more`
    : ids.join(' ');

function untested(pen: Pen, results: Results): readonly string[] {
  const groups = untestedByReason(results);
  if (groups.length === 0) return [];
  const lines = groups.flatMap(({ reason, ids }) => [
    ...wrap(clip(oneLine(reason), 400), pen.width - 2).map((line) => `  ${line}`),
    ...wrap(idsText(ids), pen.width - 4).map((line) => pen.colors.dim(`    ${line}`)),
  ]);
  return [pen.colors.bold('untested'), ...lines, ''];
}

function listed(pen: Pen, title: string, entries: readonly Entry[]): readonly string[] {
  if (entries.length === 0) return [];
  const lines = entries.flatMap(([label, text]) => {
    const [first = '', ...more] = wrap(`${oneLine(label)}: ${clip(oneLine(text), 1000)}`, pen.width - 4);
    return [`  ${first}`, ...more.map((line) => `    ${line}`)];
  });
  return [pen.colors.bold(title), ...lines, ''];
}

const causes = ({ width, colors }: Pen, { causes: all }: Results): readonly string[] =>
  all.flatMap(({ root, title, lines }, index) => [
    ...(index === 0 ? ['', colors.bold('by cause')] : ['']),
    ...wrap(`${root}  ${title}`, width - 2).map((line, at) =>
      at ? `    ${line}` : `  ${colors.bold(line)}`,
    ),
    ...lines.flatMap((line) => labelled(line, width, colors.dim)),
    ...(index === all.length - 1 ? [''] : []),
  ]);

function verdict(pen: Pen, results: Results, reportPath = ''): readonly string[] {
  const { colors, width } = pen;
  const { word, status } = VERDICT[results.verdict];
  const paint = colors[SHOWN[status].color];
  const facts: readonly Entry[] = [
    ...results.remarks,
    ['counts', `${countsText(results.items)} (${results.reach})`],
    ...factsOf(results, 'terminal'),
    ['took', durationText(results.durationMs)],
    ['report', reportPath],
  ];
  return [
    `${paint(colors.bold(word.toUpperCase()))}  ${clip(oneLine(results.title), width)}`,
    ...wrap(clip(oneLine(results.summary), 2000), width - 2).map((line) => `  ${line}`),
    ...causes(pen, results),
    ...facts.flatMap(([label, text]) => (text ? labelled(words(label, text), width, colors.dim) : [])),
  ];
}

export function terminal(results: Results, options: TerminalOptions = {}): string {
  const width = Math.min(WIDEST, Math.max(NARROWEST, options.columns ?? USUAL));
  const pen: Pen = { width, colors: pc.createColors(options.color ?? wantsColor(process.stdout)) };
  const tokens = commands('token', ...results.tokenCommands);
  const lines = [
    ...(['fail', 'error', 'warn'] as const).flatMap((status) =>
      ofStatus(results, status).flatMap((item) => broken(pen, item)),
    ),
    ...(tokens.texts.length > 0 ? [...labelled(tokens, width, pen.colors.dim), ''] : []),
    ...untested(pen, results),
    ...listed(pen, 'what changed', results.changes),
    ...verdict(pen, results, options.reportPath),
  ];
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}
