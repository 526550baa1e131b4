/** How far a certification is: one line that moves on a terminal, else a line now and then; failures as they are confirmed. */
import type { WriteStream } from 'node:tty';
import { requirement } from '../fixtures/requirements.ts';
import type { Progress } from './certify.ts';

const PLAIN_EVERY_MS = 5_000;

export interface ShownProgress {
  readonly tell: (progress: Progress) => void;
  /** Takes the moving line away. */
  readonly end: () => void;
}

export function showProgress(out: Pick<WriteStream, 'write' | 'isTTY' | 'columns'>): ShownProgress {
  const moves = Boolean(out.isTTY) && !process.env['CI'];
  let toldAt = Date.now();
  let failed = 0;
  const line = (text: string): void => {
    out.write(`${moves ? '\r\x1b[K' : ''}${text}\n`);
    toldAt = Date.now();
  };
  return {
    tell({ planned, done, probe, findings }) {
      for (const { id } of findings) {
        const must = requirement(id).level === 'MUST';
        if (must) failed += 1;
        line(`${must ? '✗' : '!'} ${id}`);
      }
      if (!probe) return;
      const text = `${done}/${planned}${failed > 0 ? `, ${failed} failed` : ''}  ${probe.name}`;
      if (moves) {
        const columns = out.columns || 80;
        out.write(`\r\x1b[K${text.length < columns ? text : `${text.slice(0, columns - 2)}…`}`);
      } else if (Date.now() - toldAt >= PLAIN_EVERY_MS) line(text);
    },
    end() {
      if (moves) out.write('\r\x1b[K');
    },
  };
}
