/** Writes load-SCENARIO.json and load-SCENARIO.html, and formats the lines for the terminal. */
import { join } from 'node:path';
import { visible } from '../../certify/render/markup.ts';
import { makeFolder, writeAtomically } from '../../certify/render/write.ts';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { verdictOf, type LoadResult } from '../result.ts';
import { resultHtml } from './html.ts';

/** Removes secrets and tokens that the target may have repeated. */
export const presentable = (result: LoadResult, secrets: readonly string[]): LoadResult =>
  createRedactor(secrets).redactDeep(result, 'fixed');

/** Writes a redacted result and returns the path of the JSON file. */
export async function writeResult(result: LoadResult, directory: string): Promise<string> {
  await makeFolder(directory);
  const base = join(directory, `load-${result.scenario}`);
  await writeAtomically(`${base}.json`, `${JSON.stringify(result, null, 2)}\n`);
  await writeAtomically(`${base}.html`, resultHtml(result));
  return `${base}.json`;
}

export function terminalSummary(result: LoadResult): string {
  const [word, status] = verdictOf(result);
  const verdict =
    result.void === false ? (status === 'pass' ? 'held' : word.toUpperCase()) : `VOID: ${result.void}`;
  const lines = [
    `${result.scenario} · ${result.target}: ${verdict}`,
    ...result.summary.map((line) => `  ${line}`),
    ...result.findings.flatMap(({ id, level, failures }) => [
      `  ${id} ${level}: ${failures[0]?.message ?? ''} (${failures.reduce((sum, one) => sum + one.count, 0)} ×)`,
    ]),
    `  ${result.requests} pages, ${result.tokenCalls} token calls, ${(result.durationMs / 1000).toFixed(0)} s`,
  ];
  return visible(lines.join('\n'));
}
