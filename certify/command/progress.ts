/** Shows the progress of a run: one updated line on a terminal, otherwise a line at intervals; and findings once confirmed. */
import type { WriteStream } from 'node:tty';
import { sayMismatch } from '../../engine/checks/mismatch.ts';
import { isViolation } from '../../engine/run/state/ledger.ts';
import type { Progress } from '../certify.ts';
import { clip, oneLine } from '../render/markup.ts';
import { cut, durationText } from '../render/results.ts';

const PLAIN_EVERY_MS = 5_000;
const MOVING_EVERY_MS = 200;
const LONGEST_FINDING = 200;

/** @param redact applied to findings, because they contain text of the server */
export function showProgress(
  out: Pick<WriteStream, 'write' | 'isTTY' | 'columns'>,
  redact: (text: string) => string = (text) => text,
) {
  const moves = Boolean(out.isTTY) && !process.env['CI'];
  const everyMs = moves ? MOVING_EVERY_MS : PLAIN_EVERY_MS;
  let latest: Progress | undefined;
  const failed = new Set<string>();
  /** One line per requirement, and another one where a failure follows a warning; the report contains the rest. */
  const told = new Set<string>();
  const line = (text: string): void => {
    out.write(`${moves ? '\r\x1b[K' : ''}${text}\n`);
    again.refresh();
  };
  const now = (): void => {
    if (!latest?.check) return;
    const { done, planned, check, requests, waitedMs } = latest;
    const throttledMs = waitedMs();
    const counted = [
      `${done}/${planned}`,
      ...(failed.size > 0 ? [`${failed.size} failed`] : []),
      `${requests()} requests`,
      ...(throttledMs > 0 ? [`${durationText(throttledMs)} waited after 429`] : []),
    ];
    const text = `${counted.join(', ')}  ${check.title}`;
    const fitting = cut(text, (out.columns || 80) - 1);
    if (!moves) return line(fitting);
    out.write(`\r\x1b[K${fitting}`);
  };
  // Printed within a long check too, so that the run does not seem to hang.
  const again = setInterval(now, everyMs).unref();
  return {
    tell(progress: Progress): void {
      latest = progress;
      for (const finding of progress.findings) {
        const { id, mismatch } = finding;
        const isFailure = isViolation(finding);
        if ((isFailure ? failed : told).has(id)) continue;
        told.add(id);
        if (isFailure) failed.add(id);
        const words = clip(oneLine(redact(sayMismatch(mismatch))), LONGEST_FINDING);
        line(`${isFailure ? '✗' : '!'} ${id}  ${words}`);
      }
      if (moves) now();
    },
    /** Removes the updated line. */
    end(): void {
      clearInterval(again);
      if (moves) out.write('\r\x1b[K');
    },
  };
}
