/** Draws the requests of a client over time, which shows request storms and missing waits. */
import { clip, markup, type Markup, oneLine, visible } from './markup.ts';
import { durationText, several } from './results.ts';
import type { PictureItem, PicturePage, WalkPicture } from '../../engine/checks/walk-picture.ts';

/** One request of the client. Text only, with secrets and tokens redacted. */
export interface TimelineEntry {
  /** Milliseconds since the client was started. */
  readonly atMs: number;
  /** The duration of the answer; absent if there was none. */
  readonly tookMs?: number;
  readonly channel: 'token' | 'pages' | 'other';
  /** `GET /v1/…`, as the client spelled it. */
  readonly request: string;
  /** 0: no answer, or an aborted one. */
  readonly status: number;
  /** The number of the issued token that it carried, counted from 1. */
  readonly token?: number;
}

const WIDTH = 1000;
const LABELS = 70;
const LANE = 26;
const LEAST_BAR = 3;
const MOST_ROWS = 200;

const LANES = [
  ['token', 'tokens'],
  ['pages', 'pages'],
  ['other', 'other'],
] as const;

type Kind = 'pass' | 'warn' | 'fail';

/** pass: success; warn: to be repeated (401, 429); fail: any other error. */
const kindOf = ({ status }: TimelineEntry): Kind =>
  status >= 200 && status < 300 ? 'pass' : status === 401 || status === 429 ? 'warn' : 'fail';

const endOf = ({ atMs, tookMs = 0 }: TimelineEntry): number => atMs + tookMs;

/** The answer in words; status 0 is an aborted or missing answer. */
export const answerText = (status: number): string => (status === 0 ? 'broke off' : String(status));

/** `12 requests in 3.1 s: 1 for token answered 200, 9 for pages answered 200, 2 for pages answered 503`. */
export function inWords(entries: readonly TimelineEntry[]): string {
  if (entries.length === 0) return 'no request';
  const answers = new Map<string, number>();
  for (const { channel, status } of entries) {
    const answer = `${channel} ${status === 0 ? answerText(status) : `answered ${status}`}`;
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  const until = Math.max(...entries.map(endOf));
  const words = [...answers].map(([answer, count]) => `${count} for ${answer}`).join(', ');
  return `${several(entries.length, 'request')} in ${durationText(until)}: ${words}`;
}

/** A round time step that gives about eight ticks. */
function stepOf(untilMs: number): number {
  const rough = untilMs / 8;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
}

export function timeline(entries: readonly TimelineEntry[]): Markup {
  if (entries.length === 0) return markup`<p class="muted">The client sent no request.</p>`;
  const lanes = LANES.filter(([channel]) => entries.some((entry) => entry.channel === channel));
  const until = Math.max(1, ...entries.map(endOf));
  const x = (ms: number): string => (LABELS + (ms / until) * (WIDTH - LABELS - 10)).toFixed(1);
  const height = lanes.length * LANE + 26;
  const step = stepOf(until);
  const ticks = Array.from({ length: Math.floor(until / step) + 1 }, (_, index) => index * step);
  return markup`<div class="scroll"><svg class="timeline" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${inWords(entries)}">
${ticks.map(
  (ms) =>
    markup`<line class="grid" x1="${x(ms)}" x2="${x(ms)}" y1="0" y2="${lanes.length * LANE}"/><text class="tick" x="${x(ms)}" y="${height - 8}">${durationText(ms)}</text>`,
)}
${lanes.map(
  ([channel, name], lane) =>
    markup`<text class="lane" x="0" y="${lane * LANE + 17}">${name}</text>${entries
      .filter((entry) => entry.channel === channel)
      .map((entry) => bar(entry, lane, x))}`,
)}</svg></div>
${table(entries)}`;
}

function bar(entry: TimelineEntry, lane: number, x: (ms: number) => string): Markup {
  const from = Number(x(entry.atMs));
  const width = Math.max(LEAST_BAR, Number(x(endOf(entry))) - from);
  const kind = kindOf(entry);
  // The height distinguishes the kinds without colour: success is low, failure is tall.
  const height = kind === 'pass' ? 10 : kind === 'warn' ? 16 : 20;
  const top = lane * LANE + (LANE - height) / 2;
  return markup`<rect class="${kind}" x="${from.toFixed(1)}" y="${top}" width="${width.toFixed(1)}" height="${height}"><title>${said(entry)}</title></rect>`;
}

const said = (entry: TimelineEntry): string =>
  `${(entry.atMs / 1000).toFixed(3)} s  ${clip(entry.request, 300)}  ${answerText(entry.status)}`;

const table = (entries: readonly TimelineEntry[]): Markup =>
  markup`<details class="requests"><summary>${inWords(entries)}</summary><div class="scroll"><table><thead><tr><th scope="col" class="number">At</th><th scope="col">Request</th><th scope="col">Token</th><th scope="col" class="number">Answer</th><th scope="col" class="number">Took</th></tr></thead><tbody>${entries
    .slice(0, MOST_ROWS)
    .map(
      (entry) =>
        markup`<tr><td class="number">${(entry.atMs / 1000).toFixed(3)} s</td><td class="id">${clip(entry.request, 600)}</td><td>${entry.token ?? ''}</td><td class="number ${kindOf(entry)}">${answerText(entry.status)}</td><td class="number">${entry.tookMs === undefined ? '' : `${entry.tookMs} ms`}</td></tr>`,
    )}</tbody></table></div>${entries.length > MOST_ROWS && markup`<p class="muted">${entries.length - MOST_ROWS} more are in client.json.</p>`}</details>`;

export const TIMELINE_STYLE = `
.timeline{display:block;width:100%;min-width:34rem;height:auto;margin:.6rem 0}
.timeline rect{fill:currentColor;fill-opacity:.85}
.timeline .grid{stroke:var(--border)}
.timeline text{fill:var(--muted);font-size:13px;font-family:inherit}
.timeline .lane{fill:var(--text)}
.requests summary{cursor:pointer;color:var(--muted);font-size:.9rem}
.requests table{font-size:.88rem}
.requests td.id{overflow-wrap:anywhere;min-width:20rem}
`;

// -- where a walk breaks ---------------------------------------------------------------------------

const WIDTH_PX = 440;
const LINE_PX = 22;
const PAD_PX = 10;

const MARK_WORD = { repeated: 'comes again', missing: 'is missing', misplaced: 'out of order' } as const;

const saidItem = ({ id, testTime, mark }: PictureItem): string =>
  `${id} at ${testTime || 'no time'}${mark ? `, which ${mark === 'misplaced' ? 'is out of order' : MARK_WORD[mark]}` : ''}`;

function saidPage({ page, items, before, behind: after }: PicturePage): string {
  const more = (count: number): string[] => (count > 0 ? [`${count} more`] : []);
  return `Page ${page}: ${[...more(before), ...items.map(saidItem), ...more(after)].join('; ') || 'no items'}.`;
}

/** The picture in words, as its text alternative and for formats without pictures. */
export function walkPictureText({ pages, between, cursor }: WalkPicture): readonly string[] {
  const [first, ...rest] = pages.map(saidPage);
  return [
    first!,
    ...(cursor ? [`Cursor: ${cursor}.`] : []),
    ...(between.length > 0 ? [`Between the pages: ${between.map(saidItem).join('; ')}.`] : []),
    ...rest,
  ].map(oneLine);
}

/** A responsive SVG with a text alternative. `id` must be unique on the page. */
export function walkPictureSvg(picture: WalkPicture, id: string): Markup {
  const parts: Markup[] = [];
  let y = 0;
  const text = (content: string, x: number, at: number, kind: string): Markup =>
    markup`<text class="${kind}" x="${x}" y="${at}">${clip(visible(content), 52)}</text>`;
  const mark = (item: PictureItem): void => {
    const middle = y + LINE_PX / 2;
    const kind = item.mark ?? 'plain';
    parts.push(
      markup`<circle class="mark ${kind}" cx="24" cy="${middle}" r="5"/>`,
      text(`${item.id}  ${item.testTime}`, 40, middle + 4, `item ${kind}`),
    );
    if (item.mark) {
      y += LINE_PX - 4;
      parts.push(
        markup`<text class="word" x="40" y="${y + LINE_PX / 2 + 2}">↑ ${MARK_WORD[item.mark]}</text>`,
      );
    }
    y += LINE_PX;
  };
  const note = (content: string): void => {
    parts.push(text(content, 40, y + LINE_PX / 2 + 4, 'note'));
    y += LINE_PX;
  };
  for (const [index, { page, items, before, behind: after }] of picture.pages.entries()) {
    if (index > 0) {
      const top = y;
      y += 6;
      (picture.cursor?.split(' ') ?? []).forEach((part, at) => note(`${at === 0 ? '↓' : ' '} ${part}`));
      picture.between.forEach(mark);
      y += 6;
      parts.push(markup`<line class="cursor" x1="24" x2="24" y1="${top}" y2="${y}"/>`);
    }
    const top = y;
    parts.push(text(`page ${page}`, PAD_PX, y + 16, 'page'));
    y += LINE_PX;
    if (before > 0) note(`… ${before} more`);
    items.forEach(mark);
    if (items.length === 0) note('no items');
    if (after > 0) note(`… ${after} more`);
    y += 4;
    parts.push(
      markup`<rect class="sheet" x="1" y="${top + 1}" width="${WIDTH_PX - 2}" height="${y - top - 2}" rx="6"/>`,
    );
  }
  return markup`<svg class="walk" viewBox="0 0 ${WIDTH_PX} ${y}" width="${WIDTH_PX}" role="img" aria-labelledby="${id}-t ${id}-d"><title id="${id}-t">Where the walk breaks</title><desc id="${id}-d">${walkPictureText(picture).join(' ')}</desc>${parts}</svg>`;
}

export const WALK_PICTURE_STYLE = `
svg.walk{display:block;max-width:100%;height:auto;background:var(--page);border-radius:6px}
svg.walk text{fill:var(--text);font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
svg.walk .page,svg.walk .note{fill:var(--muted)}
svg.walk .page,svg.walk .word{font-weight:700}
svg.walk .sheet{fill:none;stroke:var(--border)}
svg.walk .cursor{stroke:var(--muted);stroke-dasharray:3 3}
svg.walk .mark{fill:var(--muted)}
svg.walk .mark.repeated,svg.walk .mark.misplaced{fill:var(--fail)}
svg.walk .mark.missing{fill:none;stroke:var(--fail);stroke-width:2;stroke-dasharray:3 2}
svg.walk .word,svg.walk .item.repeated,svg.walk .item.missing,svg.walk .item.misplaced{fill:var(--fail)}
`;
