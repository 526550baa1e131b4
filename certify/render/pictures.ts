/** Draws the requests of a client over time, which shows request storms and missing waits; and where a walk breaks. */
import { clip, markup, type Markup, oneLine } from './markup.ts';
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

// -- where a walk breaks ---------------------------------------------------------------------------

const MARK_WORDS = { repeated: 'comes again', missing: 'is missing', misplaced: 'is out of order' } as const;

const itemLine = ({ id, testTime, mark }: PictureItem): string =>
  `${mark ? '✗' : '·'} ${id} at ${testTime || 'no time'}${mark ? ` ${MARK_WORDS[mark]}` : ''}`;

const pageLines = ({ page, items, before, after }: PicturePage): readonly string[] => [
  `page ${page}${before > 0 ? `, ${before} more` : ''}`,
  ...(items.length > 0 ? items.map(itemLine) : ['no items']),
  ...(after > 0 ? [`${after} more`] : []),
];

/** Both pages around the break, one item per line, with the cursor and the lost items between them. */
export function walkLines({ pages: [first, ...rest], between, cursor }: WalkPicture): readonly string[] {
  return [
    ...pageLines(first!),
    ...(cursor ? [`→ ${cursor}`] : []),
    ...between.map(itemLine),
    ...rest.flatMap(pageLines),
  ].map(oneLine);
}
