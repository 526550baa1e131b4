/** `npm run load -- merge FILES`: the results of runners that ran side by side, as one. */
import { readFile, writeFile } from 'node:fs/promises';
import { mergeParts, type Part } from '../estimate/merge.ts';
import type { LoadResult } from '../result.ts';
import { UsageError } from '../../fixtures/errors.ts';

/** A result file, a summary file, or a runner's log with the summary's line in it. Throws UsageError. */
export async function readPart(file: string): Promise<Part> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new UsageError(`${file}: can't be read`);
  });
  for (const candidate of [
    text,
    ...text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .reverse(),
  ]) {
    const parsed = parse(candidate);
    if (parsed?.histogram) {
      const counts = parsed.counts ?? { pages: parsed.requests ?? 0, token_calls: parsed.tokenCalls ?? 0 };
      return {
        seconds: parsed.seconds ?? (parsed.durationMs ?? 0) / 1000,
        histogram: parsed.histogram,
        counts,
      };
    }
  }
  throw new UsageError(`${file}: holds no histogram of a load run`);
}

function parse(text: string): (Partial<Part> & Partial<LoadResult>) | undefined {
  try {
    return JSON.parse(text) as Partial<Part> & Partial<LoadResult>;
  } catch {
    return undefined;
  }
}

export async function mergeCommand(files: readonly string[], output?: string): Promise<number> {
  const merged = mergeParts(await Promise.all(files.map(readPart)));
  const { parts, requests, seconds, requestsPerSecond, p50Ms, p99Ms } = merged;
  if (output) await writeFile(output, `${JSON.stringify(merged, null, 2)}\n`);
  console.log(
    `${parts} parts: ${requests} requests in ${seconds.toFixed(1)} s, ${requestsPerSecond.toFixed(1)}/s, p50 ≤ ${p50Ms.toFixed(1)} ms, p99 ≤ ${p99Ms.toFixed(1)} ms`,
  );
  return 0;
}
