/** `npm run load -- merge FILES`: merges the results of parallel runners. */
import { readFile, writeFile } from 'node:fs/promises';
import { mergeParts, type Merged, type Part } from '../estimate/merge.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { readRecords } from '../k6/lib/record.ts';
import { conformant, EXIT, gatherFindings, type LoadResult } from '../result.ts';
import { UsageError } from '../../engine/errors.ts';

interface ReadPart extends Part {
  readonly findings: readonly Finding[];
}

/** Reads a result file, a summary file, or a runner's log that contains the summary. Throws UsageError. */
async function readPart(file: string): Promise<ReadPart> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new UsageError(`${file}: cannot be read`);
  });
  const lines = text.split('\n');
  const candidates = [text, ...lines.filter((line) => line.startsWith('{')).reverse()];
  for (const candidate of candidates) {
    const parsed = parse(candidate);
    if (!parsed?.histogram) continue;
    const { void: why, shared, schedulerLagP99Ms } = parsed;
    return {
      seconds: parsed.seconds ?? (parsed.durationMs ?? 0) / 1000,
      histogram: parsed.histogram,
      counts: parsed.counts ?? { pages: parsed.requests ?? 0, token_calls: parsed.tokenCalls ?? 0 },
      ...(typeof why === 'string' ? { void: why } : {}),
      ...(shared ? { shared } : {}),
      ...(schedulerLagP99Ms === undefined ? {} : { schedulerLagP99Ms }),
      findings: [
        ...readRecords(lines).flatMap((one) => (one.kind === 'finding' ? [one] : [])),
        ...(parsed.findings ?? []).flatMap(({ id, failures }) =>
          failures.map(({ message }) => ({ id, message })),
        ),
      ],
    };
  }
  throw new UsageError(`${file}: contains no histogram of a load run`);
}

type Parsed = Partial<Omit<Part, 'void'>> &
  Partial<Pick<LoadResult, 'durationMs' | 'requests' | 'tokenCalls' | 'findings' | 'void'>>;

function parse(text: string): Parsed | undefined {
  try {
    return JSON.parse(text) as Parsed;
  } catch {
    return undefined;
  }
}

/** Prints the merged result; exit status as for a scenario. Throws a UsageError for mixed or duplicate parts. */
export async function mergeCommand(files: readonly string[], output?: string): Promise<number> {
  const parts = await Promise.all(files.map(readPart));
  let merged: Merged;
  try {
    merged = mergeParts(parts);
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
  const findings = gatherFindings(parts.flatMap((part) => part.findings));
  // Findings that were counted but not printed count as well.
  const correct = conformant(findings) && (findings.length > 0 || !merged.counts['findings']);
  const { requests, seconds, requestsPerSecond, p50Ms, p99Ms, errorRate, held = true } = merged;
  if (output)
    await writeFile(output, `${JSON.stringify({ ...merged, conformant: correct, findings }, null, 2)}\n`);
  console.log(
    `${merged.parts} parts: ${requests} requests in ${seconds.toFixed(1)} s, ${requestsPerSecond.toFixed(1)}/s, p50 ≤ ${p50Ms.toFixed(1)} ms, p99 ≤ ${p99Ms.toFixed(1)} ms, ${(errorRate * 100).toFixed(2)} % failed`,
  );
  for (const { id, failures } of findings) console.log(`  ${id}: ${failures[0]?.message ?? ''}`);
  if (merged.void) {
    console.log(`VOID: ${merged.void}`);
    return EXIT.void;
  }
  console.log(!correct ? 'NON-CONFORMANT UNDER LOAD' : held ? 'held' : 'NOT HELD');
  return held && correct ? EXIT.held : EXIT.broken;
}
