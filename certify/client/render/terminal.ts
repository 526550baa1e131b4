/** What a run leaves on the terminal: what broke, what could not be seen, the verdict. */
import pc from 'picocolors';
import {
  countsText,
  durationText,
  VERDICT_STATUS,
  VERDICT_WORD,
  type EvidenceLine,
} from '../../render/facts.ts';
import { clip, oneLine } from '../../render/markup.ts';
import { labelled, wrap } from '../../render/text.ts';
import type { Status } from '../../report.ts';
import type { ClientFailure, ClientReport, SituationResult } from '../report.ts';
import { linesOf, selectionText, untestedByReason } from './words.ts';

export interface TerminalOptions {
  /** Width in columns; 80 where unknown, and never taken for less. */
  readonly columns?: number | undefined;
  readonly color?: boolean;
  readonly reportPath?: string;
}

const NARROWEST = 80;
const WIDEST = 140;

type Colors = ReturnType<typeof pc.createColors>;

const paint = (colors: Colors, status: Status): ((text: string) => string) =>
  ({
    pass: colors.green,
    fail: colors.red,
    warn: colors.yellow,
    untested: colors.dim,
    error: colors.magenta,
  })[status];

/** A request on one line; the whole of it stands in the report. */
const shortened = (one: EvidenceLine, width: number): EvidenceLine =>
  one.kind === 'exchange'
    ? { ...one, kind: 'command', texts: one.texts.map((text) => cut(brief(text), width - 14)) }
    : one;

const brief = (text: string): string => text.replace(/ \/\S*\/tenants\/[^/\s]+\//, ' …/');
const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text;

/** The closing text of a run, ending in a newline. */
export function terminal(report: ClientReport, options: TerminalOptions = {}): string {
  const width = Math.min(WIDEST, Math.max(NARROWEST, options.columns ?? NARROWEST));
  const colors = pc.createColors(options.color ?? pc.isColorSupported);
  const of = (status: Status): readonly SituationResult[] =>
    report.situations.filter((situation) => situation.status === status);

  const heading = ({ name, level, section, title, status }: SituationResult): string[] => {
    const color = paint(colors, status);
    return [
      `${color(colors.bold(name))}  ${color(level)}  ${colors.dim(`§${section}`)}`,
      ...wrap(title, width - 2).map((one) => `  ${one}`),
    ];
  };
  const block = (situation: SituationResult): string[] => [
    ...heading(situation),
    ...situation.failures.flatMap((failure: ClientFailure) =>
      linesOf(failure).flatMap((one) => labelled(shortened(one, width), width, colors.dim)),
    ),
    ...(situation.status === 'error'
      ? labelled({ label: 'kit error', texts: [situation.reason ?? ''], kind: 'words' }, width, colors.dim)
      : labelled({ label: 'look at', texts: situation.lookAt, kind: 'words' }, width, colors.dim)),
    '',
  ];
  const untested = untestedByReason(report).flatMap(([reason, names]) => [
    ...wrap(clip(oneLine(reason), 400), width - 2).map((one) => `  ${one}`),
    ...wrap(names.join(' '), width - 4).map((one) => colors.dim(`    ${one}`)),
  ]);
  const color = paint(colors, VERDICT_STATUS[report.verdict]);
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['selection', selectionText(report)],
    ['counts', `${countsText(report.situations)} (of ${report.situations.length} situations)`],
    ['took', durationText(report.durationMs)],
    ['report', options.reportPath],
  ];
  const lines = [
    ...[...of('fail'), ...of('error'), ...of('warn')].flatMap(block),
    ...(untested.length > 0 ? [colors.bold('untested'), ...untested, ''] : []),
    `${color(colors.bold(VERDICT_WORD[report.verdict].toUpperCase()))}  ${clip(oneLine(report.client), width - 20)}`,
    ...wrap(clip(oneLine(report.summary), 2000), width - 2).map((one) => `  ${one}`),
    ...facts.flatMap(([label, text]) =>
      text ? labelled({ label, texts: [text], kind: 'words' }, width, colors.dim) : [],
    ),
  ];
  return `${lines.map((one) => one.trimEnd()).join('\n')}\n`;
}
