/** Files of flags and reports: read with messages of one line, checked before anything is sent, written atomically. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, statSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { z } from 'zod';
import { UsageError } from './errors.ts';

/** Throws a UsageError; `label`: the flag or member that names the file, `what`: its description. */
const unreadable =
  (label: string, what: string) =>
  ({ code, message }: NodeJS.ErrnoException): never => {
    throw new UsageError(`${label}: can't read ${what} (${code ?? message})`);
  };

export const readText = (path: string, label: string, what = path): Promise<string> =>
  readFile(path, 'utf8').catch(unreadable(label, what));

export const readFolder = (path: string, label: string): Promise<string[]> =>
  readdir(path).catch(unreadable(label, path));

/** Throws a UsageError if there is no such file or folder. */
export const requirePath = async (path: string, label: string): Promise<void> =>
  void (await stat(path).catch(unreadable(label, path)));

/** Reads a JSON file of a flag; `what` describes its content. Throws a UsageError that names the wrong member. */
export async function readJson<T>(
  path: string,
  flag: string,
  what: string,
  schema: z.ZodType<T>,
): Promise<T> {
  const text = await readText(path, flag);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new UsageError(`${flag}: ${path} is not JSON`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  const why = `${first!.path.join('.') || 'the whole'}: ${withoutPrefix(first!.message)}`;
  throw new UsageError(`${flag}: ${path} is not a ${what}: ${why}`);
}

/** A message of zod: the rest says what is invalid. */
export const withoutPrefix = (message: string): string => message.replace(/^Invalid input: /, '');

/** Like recursive mkdir, which loops forever in folders that reject new ones with ENOENT, such as /proc. */
export function makeFolder(path: string): void {
  const exists = (): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (exists()) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it.
    if (!exists()) throw error;
  }
}

/** A folder for temporary files; it is removed with them. */
export async function temporaryFolder(name: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), `${name}-`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Creates the folder of a flag and checks that it is writable, before anything is sent. Throws a UsageError. */
export async function prepareDirectory(directory: string, flag = '--report-dir'): Promise<void> {
  try {
    makeFolder(directory);
    const trial = join(directory, `.${randomUUID()}.tmp`);
    await writeFile(trial, '');
    await rm(trial);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `files can't be written to ${directory} (${code ?? message}); name another directory with ${flag}`,
    );
  }
}

export async function prepareFile(path: string, flag: string): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  if (there?.isDirectory()) throw new UsageError(`${flag}: ${path} is a directory; name a file`);
  await prepareDirectory(dirname(path), flag);
}

/** Replaces the file atomically, so that a reader never sees half of it. Writes to devices such as /dev/stdout directly. */
export async function writeAtomically(path: string, text: string): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  if (there && !there.isFile()) return writeFile(path, text);
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Throws a UsageError if the file exists, which stays as it is, or cannot be written; `what` names it there. */
export const writeNew = (path: string, text: string, mode: number, what = path): Promise<void> =>
  writeFile(path, text, { flag: 'wx', mode }).catch(({ code, message }: NodeJS.ErrnoException) => {
    const why =
      code === 'EEXIST' ? 'already exists and was not changed' : `can't be written (${code ?? message})`;
    throw new UsageError(`${what} ${why}`);
  });

/** Node's message for a failed system call, without the name of the call. */
export const reasonOf = ({ message }: Error): string =>
  message.replace(/, (write|open|rename|mkdir)\b.*$/, '');
