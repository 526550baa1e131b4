/** Writes the files of a report atomically, the data first; and ends a command with its results. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JWK } from 'jose';
import { EXIT } from '../../engine/command-line.ts';
import { makeFolder, reasonOf, writeAtomically } from '../../engine/files.ts';
import { sign, statementOf } from '../report/certificate.ts';
import type { Report } from '../report/report.ts';
import { badge } from './badge.ts';
import { html } from './html.ts';
import { junit } from './junit.ts';
import { resultsOf } from './service-results.ts';
import type { Files, Format, Results } from './results.ts';
import { summary } from './summary.ts';
import { terminal } from './terminal.ts';

const json = (report: unknown): string => `${JSON.stringify(report, null, 2)}\n`;

export const RENDERINGS: Readonly<Record<Format, (results: Results) => string>> = {
  html,
  junit,
  summary,
  badge,
};

const CERTIFICATE = 'certificate.jws';

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
  makeFolder(directory);
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

interface Ending {
  /** Of the command. */
  readonly name: string;
  readonly output: Pick<NodeJS.WriteStream, 'write' | 'columns'>;
  /** As the user named it. */
  readonly reportDir: string;
  readonly write: () => Promise<unknown>;
  /** The exit status, unless the kit itself failed. Default: that of the verdict. */
  readonly usual?: number;
}

/** Writes the files and prints the results, with one line if they could not be written. Returns the exit status. */
export async function end(results: Results, ending: Ending): Promise<number> {
  const { name, output, reportDir, write, usual = EXIT[results.verdict] } = ending;
  const unwritten = await write().then(
    () => undefined,
    (error: Error) => error,
  );
  const reportPath = unwritten ? undefined : join(reportDir, results.files.html);
  output.write(`\n${terminal(results, { columns: output.columns, reportPath })}`);
  if (unwritten) console.error(`${name}: ${unwritten.message}`);
  if (usual === EXIT['non-conformant']) return usual;
  const hasErrors = results.items.some(({ status }) => status === 'error');
  return hasErrors || (unwritten && usual === EXIT.conformant) ? EXIT.kit : usual;
}
