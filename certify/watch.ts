/** `--watch`: when to run again. A key (or a line), or files that changed. */
import { watch } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Readable } from 'node:stream';

export interface Watched {
  /** Files: the target file, its dataset. */
  readonly files: readonly string[];
  /** Folders, with all that is in them. */
  readonly folders: readonly string[];
  readonly input: Readable & { readonly isTTY?: boolean; setRawMode?(on: boolean): unknown };
  readonly signal: AbortSignal;
}

/** An editor writes a file in several steps, and a server takes a moment to start anew. */
const SETTLED_MS = 500;

/**
 * Gives why to run again, one run after the other: what happens during a run is a reason for one more.
 * Ends with the key q, a line `q`, or the signal.
 */
export async function* reasons({ files, folders, input, signal }: Watched): AsyncGenerator<string> {
  let why: string | undefined;
  let over = signal.aborted;
  let wake = (): void => {};
  let settling: NodeJS.Timeout | undefined;
  const ask = (reason: string, waitMs: number): void => {
    clearTimeout(settling);
    settling = setTimeout(() => {
      why = reason;
      wake();
    }, waitMs);
  };
  const end = (): void => {
    over = true;
    wake();
  };
  const onInput = (data: Buffer | string): void => {
    const text = data.toString();
    // In raw mode Ctrl-C is a key like any other.
    if (text.includes('\u0003')) process.kill(process.pid, 'SIGINT');
    else if (/^q/i.test(text.trim())) end();
    else ask('asked for', 0);
  };
  const watchers = [
    ...files.map((file) =>
      // The folder is watched: an editor may put another file in the file's place.
      watch(dirname(resolve(file)), (_, name) => {
        if (name !== null && resolve(dirname(file), name) === resolve(file))
          ask(`${file} changed`, SETTLED_MS);
      }),
    ),
    ...folders.map((folder) =>
      watch(folder, { recursive: true }, (_, name) => ask(`${name ?? folder} changed`, SETTLED_MS)),
    ),
  ];
  signal.addEventListener('abort', end, { once: true });
  if (input.isTTY) input.setRawMode?.(true);
  input.on('data', onInput);
  input.resume();
  try {
    for (;;) {
      while (why === undefined && !over) await new Promise<void>((resolve) => (wake = resolve));
      if (over) return;
      const reason = why!;
      why = undefined;
      yield reason;
    }
  } finally {
    clearTimeout(settling);
    for (const watcher of watchers) watcher.close();
    signal.removeEventListener('abort', end);
    input.off('data', onInput);
    if (input.isTTY) input.setRawMode?.(false);
    input.pause();
  }
}
