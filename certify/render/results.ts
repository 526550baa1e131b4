/** The results of certifying a service or a client, with counts, words and order shared by all report formats. */
import type { Mismatch } from '../../engine/checks/mismatch.ts';
import type { Level } from '../../engine/requirements.ts';
import type { Status, Verdict } from '../report/report.ts';
import { type Markup, clip, oneLine, visible } from './markup.ts';

/**
 * One labelled piece of evidence. A command is never cut or wrapped, so that it can be copied; a line is cut at the
 * width; the page shows verbatim text in the lines that it has.
 */
export interface EvidenceLine {
  readonly label: string;
  readonly texts: readonly string[];
  readonly kind: 'words' | 'verbatim' | 'command' | 'line';
  /** Shown instead of the texts in formats with pictures. */
  readonly picture?: Markup;
}

export interface Item {
  readonly id: string;
  readonly section: string;
  readonly level: Level;
  readonly class?: string;
  readonly title: string;
  readonly status: Status;
  readonly durationMs: number;
  /** The first failure, or the reason if untested or an error; empty if passed. */
  readonly message: string;
  /** Further facts, a few words each. */
  readonly asides: readonly string[];
  /** One block per failure, the smallest first; one block if there is no failure. */
  readonly blocks: readonly (readonly EvidenceLine[])[];
}

export interface Cause {
  readonly root: string;
  readonly title: string;
  readonly lines: readonly EvidenceLine[];
}

export type Entry = readonly [label: string, text: string];

export interface Fact {
  readonly label: string;
  readonly text: string;
  /** The formats that show it; all if absent. */
  readonly only?: readonly ('terminal' | Format)[];
}

export interface Table {
  readonly title: string;
  readonly about?: string;
  readonly head: readonly string[];
  /** A pair is shown in the colour of the status. */
  readonly rows: readonly (readonly (string | readonly [text: string, status: Status])[])[];
  /** first: before the items, and in Markdown too; folded: closed until the reader opens it. */
  readonly place?: 'first' | 'folded';
}

export interface Results {
  readonly kind: string;
  readonly noun: string;
  readonly title: string;
  readonly verdict: Verdict;
  readonly summary: string;
  /** What limits the verdict, or what broke first. */
  readonly remarks: readonly Entry[];
  /** `of 96 requirements`. */
  readonly reach: string;
  readonly kit: { readonly name: string; readonly version: string };
  readonly startedAt: string;
  readonly durationMs: number;
  readonly facts: readonly Fact[];
  readonly items: readonly Item[];
  readonly causes: readonly Cause[];
  readonly changes: readonly Entry[];
  readonly tables: readonly Table[];
  /** The command that replays the run, and those that fetch the tokens in the evidence. */
  readonly replay?: string;
  readonly tokenCommands: readonly string[];
  readonly legend?: Markup;
  readonly files: Files;
}

/** The names of a report's files; a format without a name is not written. */
export interface Files {
  readonly data: string;
  readonly html: string;
  readonly junit?: string;
  readonly summary?: string;
  readonly badge?: string;
}

export type Format = Exclude<keyof Files, 'data'>;

/** How a status is shown, in reading order: the word after a count (`3 failed`), and the colour of a terminal. */
export const SHOWN = {
  fail: { word: 'failed', mark: '✗', color: 'red' },
  error: { word: 'kit errors', mark: '?', color: 'magenta' },
  warn: { word: 'warned', mark: '!', color: 'yellow' },
  untested: { word: 'untested', mark: '○', color: 'dim' },
  pass: { word: 'passed', mark: '✓', color: 'green' },
} as const satisfies Record<Status, object>;

export const STATUSES = Object.keys(SHOWN) as readonly Status[];

/** `3 failed`, `1 kit error`. */
export const countWord = (status: Status, count: number): string =>
  status === 'error' && count === 1 ? 'kit error' : SHOWN[status].word;

/** The word for a verdict, and the status in whose colour it is shown. */
export const VERDICT = {
  conformant: { word: 'Conformant', status: 'pass' },
  'non-conformant': { word: 'Non-conformant', status: 'fail' },
  incomplete: { word: 'Incomplete', status: 'warn' },
} as const satisfies Record<Verdict, object>;

const SECTION_TITLE: Readonly<Record<string, string>> = {
  '1': 'The service',
  '2.1': 'Token response',
  '2.2': 'Access token claims',
  '2.3': 'Screening object',
  '2.4': 'Page of screenings',
  '4.1': 'Token request',
  '4.2': 'Retrieval',
  '5': 'Authentication',
  '6': 'Events',
  '7.1': 'Token errors',
  '7.2': 'REST errors',
  '9': 'Versioning',
};

/** The title of a section, also given one of its rules (`5.6`). */
export const sectionTitle = (name: string): string =>
  SECTION_TITLE[name] ?? SECTION_TITLE[name.split('.')[0]!] ?? 'Further requirements';

export function counts(results: readonly { readonly status: Status }[]): Readonly<Record<Status, number>> {
  const counted: Record<Status, number> = { fail: 0, error: 0, warn: 0, untested: 0, pass: 0 };
  for (const { status } of results) counted[status] += 1;
  return counted;
}

/** The counts that are not zero, in reading order: `3 failed, 1 warned, 9 untested, 83 passed`. */
export function countsText(results: readonly { readonly status: Status }[]): string {
  const counted = counts(results);
  const words = STATUSES.filter((status) => counted[status] > 0);
  return (
    words.map((status) => `${counted[status]} ${countWord(status, counted[status])}`).join(', ') ||
    'nothing tested'
  );
}

export const ofStatus = ({ items }: Pick<Results, 'items'>, status: Status): readonly Item[] =>
  items.filter((item) => item.status === status);

/** The sections in the order of the specification. */
export function sections<T extends { readonly section: string }>(all: readonly T[]) {
  const names = [...new Set(all.map(({ section }) => section))].sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
  return names.map((name) => ({
    name,
    title: sectionTitle(name),
    items: all.filter(({ section }) => section === name),
  }));
}

export function untestedByReason(results: Pick<Results, 'items'>) {
  const idsByReason = new Map<string, string[]>();
  for (const { id, message } of ofStatus(results, 'untested')) {
    const reason = message || 'no reason was given';
    idsByReason.set(reason, [...(idsByReason.get(reason) ?? []), id]);
  }
  return [...idsByReason].map(([reason, ids]) => ({ reason, ids }));
}

export const factsOf = ({ facts }: Results, format: NonNullable<Fact['only']>[number]): readonly Entry[] =>
  facts.flatMap(({ label, text, only }) =>
    text !== '' && (only?.includes(format) ?? true) ? [[label, text] as const] : [],
  );

export const withoutEmpty = (lines: readonly EvidenceLine[]): readonly EvidenceLine[] =>
  lines
    .map((line) => ({ ...line, texts: line.texts.filter((text) => text !== '') }))
    .filter(({ texts }) => texts.length > 0);

const lineOf =
  (kind: EvidenceLine['kind']) =>
  (label: string, ...texts: readonly string[]): EvidenceLine => ({ label, texts, kind });
export const words = lineOf('words');
export const commands = lineOf('command');

export const mismatchLines = ({ expected, received }: Mismatch): readonly EvidenceLine[] => [
  words('expected', expected),
  words('received', received),
];

export const number = (value: number): string => value.toLocaleString('en-US');

/** `3 requests`, `1 request`. */
export const several = (count: number, one: string, more = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : more}`;

/** `850 ms`, `12.3 s`, `2 min 5 s`, `1 h 4 min`. */
export function durationText(durationMs: number): string {
  if (durationMs < 1000) return `${Math.round(durationMs)} ms`;
  const seconds = durationMs / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const limitedTo = (names: readonly string[]): string =>
  `This run was limited to ${names.join(', ')}: the verdict covers only this selection.`;

// -- plain text for terminals and logs: wrapped words, labelled lines ------------------------------

/** Wraps text at `width` columns. A word longer than that (a URL) stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (line && line.length + 1 + word.length > width && word.length <= width) {
      lines.push(line);
      line = word;
    } else {
      line = line ? `${line} ${word}` : word;
    }
  }
  return line ? [...lines, line] : lines;
}

/** Longer lines are cut by the terminal's line editor. */
const LONGEST_COMMAND = 4_000;

/** Replaces a command that cannot be pasted as one line, because half a command is another command. */
export const pastable = (text: string): string =>
  text.length > LONGEST_COMMAND || text !== visible(text).replace(/[\r\n]/g, ' ')
    ? '# too long to paste as one line: see report.json'
    : text;

/** Cuts a text to this many columns. */
export const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text;

const INDENT = '  ';
const LABEL_WIDTH = 12;
const LONGEST_EXCHANGE = 600;
const MOST_SCRIPT_LINES = 20;

/** A label followed by its texts. Commands stay on one line, so that they can be copied. */
export function labelled(
  { label, texts, kind }: EvidenceLine,
  width: number,
  paint: (label: string) => string = (plain) => plain,
): readonly string[] {
  const shown = texts.slice(0, MOST_SCRIPT_LINES);
  const lines = shown.flatMap((text) =>
    kind === 'command'
      ? [pastable(text)]
      : kind === 'line'
        ? [cut(oneLine(text), width - INDENT.length - LABEL_WIDTH)]
        : wrap(clip(visible(text), LONGEST_EXCHANGE), width - INDENT.length - LABEL_WIDTH),
  );
  if (texts.length > shown.length) lines.push(`… (${texts.length - shown.length} more lines)`);
  return lines.map(
    (line, index) => INDENT + (index ? ' '.repeat(LABEL_WIDTH) : paint(label.padEnd(LABEL_WIDTH))) + line,
  );
}
