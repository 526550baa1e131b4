/** Writes load-SCENARIO.json and load-SCENARIO.html, and the lines for the terminal. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoadResult } from '../result.ts';
import { resultHtml } from './html.ts';

/** Secrets are taken out of every text, wherever they might have come from. */
export async function writeResult(
  result: LoadResult,
  directory: string,
  secrets: readonly string[],
): Promise<string> {
  await mkdir(directory, { recursive: true });
  const base = join(directory, `load-${result.scenario}`);
  const clean = (text: string): string =>
    secrets
      .filter((secret) => secret.length >= 6)
      .reduce((kept, secret) => kept.replaceAll(secret, '***'), text);
  await writeFile(`${base}.json`, clean(`${JSON.stringify(result, null, 2)}\n`));
  await writeFile(`${base}.html`, clean(resultHtml(result)));
  return `${base}.json`;
}

export function terminalSummary(result: LoadResult): string {
  const verdict =
    result.void !== false
      ? `VOID: ${result.void}`
      : !result.conformant
        ? 'NON-CONFORMANT UNDER LOAD'
        : result.held
          ? 'held'
          : 'NOT HELD';
  return [
    `${result.scenario} · ${result.target}: ${verdict}`,
    ...result.summary.map((line) => `  ${line}`),
    ...result.findings.flatMap(({ id, level, failures }) => [
      `  ${id} ${level}: ${failures[0]?.message ?? ''} (${failures.reduce((sum, one) => sum + one.count, 0)} ×)`,
    ]),
    `  ${result.requests} pages, ${result.tokenCalls} token calls, ${(result.durationMs / 1000).toFixed(0)} s`,
  ].join('\n');
}
