/** Text from a target is hostile until escaped; only this module turns it into HTML, XML or a line of text. */

/** Control characters, lone surrogates, separators and direction overrides, which can deceive readers or break XML. */
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff]|\p{Cs}/gu;

/** Replaces invisible characters by `\u{…}`, so that they are readable and harmless. Keeps newlines and tabs. */
export function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** The text as one line without invisible characters. */
export const oneLine = (text: string): string => visible(text).replace(/\s+/g, ' ').trim();

/** Cuts text to `limit` characters and says how many were cut, if that is shorter; report.json has the whole text. */
export function clip(text: string, limit: number): string {
  const kept = [...text.slice(0, 2 * limit + 2)].slice(0, limit).join('');
  const clipped = `${kept}… (${(text.length - kept.length).toLocaleString('en-US')} more characters)`;
  return clipped.length < text.length ? clipped : text;
}

export class Markup {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for HTML and XML content and quoted attributes. */
export const escape = (text: string): string => visible(text).replace(/[&<>"']/g, (c) => ENTITIES[c]!);

type Piece = Markup | string | number | false | undefined | readonly Piece[];

function render(piece: Piece): string {
  if (piece instanceof Markup) return piece.text;
  if (typeof piece === 'string' || typeof piece === 'number') return escape(String(piece));
  return piece ? piece.map(render).join('') : '';
}

/** Renders a sentence with `code` between backticks. */
export const prose = (text: string): Markup =>
  new Markup(escape(text).replace(/`([^`\n]+)`/g, '<code>$1</code>'));

/** Template tag that escapes every value except Markup; `false` and undefined render nothing. */
export function markup(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(String.raw({ raw: strings }, ...pieces.map(render)));
}
