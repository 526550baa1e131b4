/** `--watch`: runs again on a key (or a line), or when files change. */
import { watch } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Readable } from 'node:stream';

interface Watched {
  readonly files: readonly string[];
  /** Folders, watched recursively. */
  readonly folders: readonly string[];
  readonly input: Readable & { readonly isTTY?: boolean; setRawMode?(on: boolean): unknown };
  readonly signal: AbortSignal;
}

/** An editor writes a file in several steps, and a server takes a moment to restart. */
const SETTLED_MS = 500;

/** The reason for each further run; changes during a run cause one. Ends with the key q, a line `q`, or the signal. */
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
    // In raw mode Ctrl-C arrives as a character.
    if (text.includes('\u0003')) process.kill(process.pid, 'SIGINT');
    else if (/^q/i.test(text.trim())) end();
    else ask('asked for', 0);
  };
  const watchers = [
    ...files.map((file) =>
      // Watches the folder, because an editor may replace the file.
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
