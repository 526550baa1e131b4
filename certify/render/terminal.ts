/** The terminal's summary of a run: failures, untested requirements, verdict. */
import pc from 'picocolors';
import type { Report, RequirementResult, Status } from '../report.ts';
import {
  changesText,
  classesText,
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
  untestedByReason,
  VERDICT_STATUS,
  VERDICT_WORD,
} from './facts.ts';
import { causesOf } from './causes.ts';
import { clip, oneLine } from './markup.ts';
import { labelled, wrap } from './text.ts';

export interface TerminalOptions {
  /** Width of the terminal in columns; 80 where unknown, and never taken for less than 40. */
  readonly columns?: number | undefined;
  /** Whether to colour. By default on a terminal, unless NO_COLOR is set, and wherever FORCE_COLOR is. */
  readonly color?: boolean;
  /** Where the report was written, to be named in the end. */
  readonly reportPath?: string;
}

const NARROWEST = 40;
const USUAL = 80;
const WIDEST = 140;

/** A file stays free of colour codes on CI too, where picocolors alone would write them. */
const wantsColor = (out: { readonly isTTY?: boolean }): boolean => {
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (FORCE_COLOR && FORCE_COLOR !== '0') return true;
  return !NO_COLOR && FORCE_COLOR !== '0' && out.isTTY === true && pc.isColorSupported;
};

interface Pen {
  readonly width: number;
  readonly colors: ReturnType<typeof pc.createColors>;
}

function paintStatus({ colors }: Pen, status: Status): (text: string) => string {
  return {
    pass: colors.green,
    fail: colors.red,
    warn: colors.yellow,
    untested: colors.dim,
    error: colors.magenta,
  }[status];
}

/** `id  LEVEL  title  §section`, with the title wrapped under itself. */
function heading(pen: Pen, result: RequirementResult): readonly string[] {
  const start = `${result.id}  ${result.level}  `;
  const section = `  §${result.section}`;
  const room = pen.width - start.length - section.length;
  if (room < 24) {
    const paint = paintStatus(pen, result.status);
    return [
      `${paint(pen.colors.bold(result.id))}  ${paint(result.level)}${pen.colors.dim(section)}`,
      ...wrap(result.title, pen.width - 2).map((line) => `  ${line}`),
    ];
  }
  const [first = '', ...more] = wrap(result.title, room);
  const gap = ' '.repeat(Math.max(0, pen.width - start.length - first.length - section.length));
  const paint = paintStatus(pen, result.status);
  return [
    `${paint(pen.colors.bold(result.id))}  ${paint(result.level)}  ${first}${gap}${pen.colors.dim(section)}`,
    ...more.map((line) => ' '.repeat(start.length) + line),
  ];
}

/** The smallest failure in full; the others are in the report. */
function broken(pen: Pen, report: Report, result: RequirementResult): readonly string[] {
  const [smallest, ...others] = result.failures;
  const lines = smallest ? evidence(report, result, smallest) : [];
  return [
    ...heading(pen, result),
    ...lines.flatMap((line) => labelled(line, pen.width, pen.colors.dim)),
    ...(others.length > 0 ? [`  and ${number(others.length)} more in the report`] : []),
    '',
  ];
}

function kitError(pen: Pen, result: RequirementResult): readonly string[] {
  const reason = { label: 'kit error', texts: [result.reason ?? 'unknown'], kind: 'words' } as const;
  return [...heading(pen, result), ...labelled(reason, pen.width, pen.colors.dim), ''];
}

/** The report has them all. */
const IDS_SHOWN = 12;
const idsText = (ids: readonly string[]): string =>
  ids.length > IDS_SHOWN + 3
    ? `${ids.slice(0, IDS_SHOWN).join(' ')} and ${ids.length - IDS_SHOWN} more`
    : ids.join(' ');

function untested(pen: Pen, report: Report): readonly string[] {
  const groups = untestedByReason(report);
  if (groups.length === 0) return [];
  const lines = groups.flatMap(({ reason, ids }) => [
    ...wrap(clip(oneLine(reason), 400), pen.width - 2).map((line) => `  ${line}`),
    ...wrap(idsText(ids), pen.width - 4).map((line) => pen.colors.dim(`    ${line}`)),
  ]);
  return [pen.colors.bold('untested'), ...lines, ''];
}

/** Labelled lines under a heading; nothing where there are none. */
function listed(
  pen: Pen,
  title: string,
  entries: readonly (readonly [label: string, text: string])[],
): readonly string[] {
  if (entries.length === 0) return [];
  const lines = entries.flatMap(([label, text]) => {
    const [first = '', ...more] = wrap(`${oneLine(label)}: ${clip(oneLine(text), 1000)}`, pen.width - 4);
    return [`  ${first}`, ...more.map((line) => `    ${line}`)];
  });
  return [pen.colors.bold(title), ...lines, ''];
}

/** The failures by cause, directly below the verdict. */
function causes(pen: Pen, report: Report): readonly string[] {
  const { width, colors } = pen;
  return causesOf(report).flatMap(({ root, title, lines }, index) => [
    ...(index === 0 ? ['', colors.bold('by cause')] : ['']),
    ...wrap(`${root}  ${title}`, width - 2).map((line, at) =>
      at ? `    ${line}` : `  ${colors.bold(line)}`,
    ),
    ...lines.flatMap((line) => labelled(line, width, colors.dim)),
    ...(index === report.diagnosis.length - 1 ? [''] : []),
  ]);
}

function verdict(pen: Pen, report: Report, reportPath: string | undefined): readonly string[] {
  const { colors, width } = pen;
  const paint = paintStatus(pen, VERDICT_STATUS[report.verdict]);
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['basis', report.basis],
    ['selection', selectionText(report)],
    ['counts', `${countsText(selected(report))} (${selectedText(report)})`],
    ['classes', classesText(report)],
    ['requests', `${number(report.requests)} in ${durationText(report.durationMs)}, seed ${report.seed}`],
    ['checks', `${number(report.evidence.executed)} of ${number(report.evidence.planned)} planned executed`],
    ['reach', reachText(report)],
    ['seen', clip(numbersText(report.evidence.seen), 400)],
    ['note', report.notes?.join('; ')],
    ['report', reportPath],
  ];
  return [
    `${paint(colors.bold(VERDICT_WORD[report.verdict].toUpperCase()))}  ${clip(oneLine(report.target.name), width)}`,
    ...wrap(clip(oneLine(report.summary), 2000), width - 2).map((line) => `  ${line}`),
    ...causes(pen, report),
    ...facts.flatMap(([label, text]) =>
      text ? labelled({ label, texts: [text], kind: 'words' }, width, colors.dim) : [],
    ),
  ];
}

/** The closing text of a run, ending in a newline. */
export function terminal(report: Report, options: TerminalOptions = {}): string {
  const width = Math.min(WIDEST, Math.max(NARROWEST, options.columns ?? USUAL));
  const pen: Pen = { width, colors: pc.createColors(options.color ?? wantsColor(process.stdout)) };
  const tokens = { label: 'token', texts: report.tokenCommands, kind: 'command' } as const;
  const lines = [
    ...ofStatus(report, 'fail').flatMap((result) => broken(pen, report, result)),
    ...ofStatus(report, 'error').flatMap((result) => kitError(pen, result)),
    ...ofStatus(report, 'warn').flatMap((result) => broken(pen, report, result)),
    ...(report.tokenCommands.length > 0 ? [...labelled(tokens, width, pen.colors.dim), ''] : []),
    ...untested(pen, report),
    ...listed(pen, 'what changed', changesText(report)),
    ...verdict(pen, report, options.reportPath),
  ];
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}
