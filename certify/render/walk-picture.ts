/** Draws where a walk breaks: items as marks, and the cursor between two pages. */
import type { PictureItem, PicturePage, WalkPicture } from '../../engine/checks/walk-picture.ts';
import { clip, markup, oneLine, visible, type Markup } from './markup.ts';

const WIDTH_PX = 440;
const LINE_PX = 22;
const PAD_PX = 10;

const MARK_WORD = { repeated: 'comes again', missing: 'is missing', misplaced: 'out of order' } as const;

const said = ({ id, testTime, mark }: PictureItem): string =>
  `${id} at ${testTime || 'no time'}${mark ? `, which ${mark === 'misplaced' ? 'is out of order' : MARK_WORD[mark]}` : ''}`;

function saidPage({ page, items, before, behind: after }: PicturePage): string {
  const more = (count: number): string[] => (count > 0 ? [`${count} more`] : []);
  return `Page ${page}: ${[...more(before), ...items.map(said), ...more(after)].join('; ') || 'no items'}.`;
}

/** The picture in words, as its text alternative and for formats without pictures. */
export function walkPictureText({ pages, between, cursor }: WalkPicture): readonly string[] {
  const [first, ...rest] = pages.map(saidPage);
  return [
    first!,
    ...(cursor ? [`Cursor: ${cursor}.`] : []),
    ...(between.length > 0 ? [`Between the pages: ${between.map(said).join('; ')}.`] : []),
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
