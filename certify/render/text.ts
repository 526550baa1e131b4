/** Plain text for terminals and logs: wrapped words, labelled lines. */
import { clip, oneLine, visible } from './markup.ts';
import type { EvidenceLine } from './results.ts';

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
export const commandLine = (text: string): string =>
  text.length > LONGEST_COMMAND || text !== visible(text).replace(/[\r\n]/g, ' ')
    ? '# too long to paste as one line: see report.json'
    : text;

const cut = (text: string, length: number): string =>
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
      ? [commandLine(text)]
      : kind === 'line'
        ? [cut(oneLine(text), width - INDENT.length - LABEL_WIDTH)]
        : wrap(clip(visible(text), LONGEST_EXCHANGE), width - INDENT.length - LABEL_WIDTH),
  );
  if (texts.length > shown.length) lines.push(`… (${texts.length - shown.length} more lines)`);
  return lines.map(
    (line, index) => INDENT + (index ? ' '.repeat(LABEL_WIDTH) : paint(label.padEnd(LABEL_WIDTH))) + line,
  );
}
