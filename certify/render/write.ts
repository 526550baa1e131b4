/** Writes the files of a report atomically, the data first. */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { UsageError } from '../../engine/errors.ts';
import { dirname, join } from 'node:path';
import type { JWK } from 'jose';
import { sign, statementOf } from '../report/certificate.ts';
import type { Report } from '../report/report.ts';
import { badge } from './badge.ts';
import { html } from './html.ts';
import { junit } from './junit.ts';
import { resultsOf } from './of-report.ts';
import type { Files, Results } from './results.ts';
import { summary } from './summary.ts';

const json = (report: unknown): string =>
  `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value), 2)}\n`;

const RENDERINGS: Readonly<Record<Exclude<keyof Files, 'data'>, (results: Results) => string>> = {
  page: html,
  junit,
  summary,
  badge,
};

const CERTIFICATE = 'certificate.jws';

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

/** Like recursive mkdir, which loops forever in folders that reject new ones with ENOENT, such as /proc. */
export async function makeFolder(path: string): Promise<void> {
  const make = (): Promise<void> =>
    mkdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  await make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await make();
  });
}

/** Creates the folder of a flag and checks that it is writable, before anything is sent. Throws a UsageError. */
export async function prepareDirectory(directory: string, flag = '--report-dir'): Promise<void> {
  try {
    await makeFolder(directory);
    const trial = join(directory, `.${randomUUID()}.tmp`);
    await writeFile(trial, '');
    await rm(trial);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `the report can't be written to ${directory} (${code ?? message}); name another folder with ${flag}`,
    );
  }
}

export async function prepareFile(path: string, flag: string): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  if (there?.isDirectory()) throw new UsageError(`${flag}: ${path} is a folder; name a file`);
  await prepareDirectory(dirname(path), flag);
}

/**
 * Writes the files of a report into `directory`, which is created if missing, and a certificate if `key` is given.
 * Returns the paths written, the data first. If a file fails, the others are still written; rejects at the end with
 * an error that names the failed ones.
 */
export async function writeReport(report: Report, directory: string, key?: JWK): Promise<string[]> {
  // A certificate of an earlier run would not match the new report.
  const certificate = join(directory, CERTIFICATE);
  await rm(certificate, { force: true });
  const written = await writeFiles(report, resultsOf(report), directory);
  if (!key) return written;
  await writeAtomically(certificate, `${await sign(statementOf(report, json(report)), key)}\n`);
  return [...written, certificate];
}

/** Writes the files of any results, and the data that they derive from. */
export async function writeFiles(data: unknown, results: Results, directory: string): Promise<string[]> {
  await makeFolder(directory);
  const written: string[] = [];
  const unwritten = new Map<string, string[]>();
  for (const [kind, name] of Object.entries(results.files) as [keyof Files, string][]) {
    const path = join(directory, name);
    try {
      await writeAtomically(path, kind === 'data' ? json(data) : RENDERINGS[kind](results));
      written.push(path);
    } catch (error) {
      const why = reasonOf(error as Error);
      unwritten.set(why, [...(unwritten.get(why) ?? []), name]);
    }
  }
  if (unwritten.size > 0) {
    const parts = [...unwritten].map(([why, names]) => `${names.join(', ')} could not be written: ${why}`);
    throw new Error(parts.join('; '));
  }
  return written;
}

/** Node's message for a failed system call, without the name of the call. */
export const reasonOf = ({ message }: Error): string =>
  message.replace(/, (write|open|rename|mkdir)\b.*$/, '');
