/** `npm run certify`: certifies a target and leaves a report. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readDataset } from '../fixtures/data/dataset.ts';
import { UsageError } from '../fixtures/errors.ts';
import { loadTarget, resolveTarget, type Target } from '../fixtures/target/target.ts';
import { parseArguments, replayCommand, type Arguments } from './arguments.ts';
import { certify } from './certify.ts';
import { showProgress } from './progress.ts';
import { startReference, type ReferenceServer } from './reference.ts';
import { terminal } from './render/terminal.ts';
import { writeReport } from './render/write.ts';
import type { Report } from './report.ts';

/** See the README: only 1 blames the target, only 0 is green. */
const EXIT = { conformant: 0, 'non-conformant': 1, usage: 2, incomplete: 3, kit: 4 } as const;
/** As a shell has it for whoever was ended by a signal. */
const INTERRUPTED = { SIGINT: 130, SIGTERM: 143 } as const;

/** Paths are relative to where the command was given, which npm leaves for the package's folder (`npm --prefix`). */
const CALLED_FROM = process.env['npm_lifecycle_event'] === 'certify' ? process.env['INIT_CWD'] : undefined;
const at = (path: string): string => resolve(CALLED_FROM ?? '.', path);

const interruption = new AbortController();
let interruptedBy: keyof typeof INTERRUPTED | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interruptedBy ??= signal;
    interruption.abort('the run was interrupted');
  });
}

process.exitCode = await main().catch((error: unknown) => {
  if (error instanceof UsageError) {
    console.error(`certify: ${error.message}`);
    return EXIT.usage;
  }
  console.error(
    `certify: the kit itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  return EXIT.kit;
});

async function main(): Promise<number> {
  const args = parseArguments(process.argv.slice(2));
  if (!args) return 0;
  const directory = await mkdtemp(join(tmpdir(), 'screenings-certify-'));
  let reference: ReferenceServer | undefined;
  try {
    const seed = args.kit.seed ?? Math.floor(Math.random() * 2 ** 31);
    if (!isDescribed(args)) {
      reference = await startReference(directory);
      console.log(`reference server: ${reference.databaseDescription}`);
    }
    const target = await targetOf(args, reference, directory);
    console.log(`certifying ${target.name} at ${target.baseUrl}, seed ${seed}`);
    const progress = showProgress(process.stdout);
    const report = await certify(target, {
      ...args.kit,
      seed,
      only: args.only,
      replay: replayCommand(args, seed),
      signal: interruption.signal,
      onProgress: progress.tell,
    });
    progress.end();
    await writeReport(report, at(args.reportDir));
    process.stdout.write(
      `\n${terminal(report, { columns: process.stdout.columns, reportPath: join(args.reportDir, 'report.html') })}`,
    );
    return interruptedBy ? INTERRUPTED[interruptedBy] : exitOf(report);
  } finally {
    await reference?.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

function isDescribed(args: Arguments): boolean {
  return args.target !== undefined || args.baseUrl !== undefined;
}

async function targetOf(
  args: Arguments,
  reference: ReferenceServer | undefined,
  directory: string,
): Promise<Target> {
  try {
    const target = args.target
      ? await loadTarget(at(args.target))
      : await resolveTarget(reference?.target() ?? described(args), { directory });
    return args.dataset ? { ...target, dataset: await readDataset(at(args.dataset)) } : target;
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}

/** What the flags say, as a target file would. */
function described({ baseUrl, authUrl, clientId }: Arguments): unknown {
  return {
    baseUrl,
    authUrl,
    clients: { primary: { clientId, clientSecret: '${SCREENINGS_CLIENT_SECRET}' } },
  };
}

function exitOf(report: Report): number {
  if (report.verdict === 'non-conformant') return EXIT['non-conformant'];
  return report.requirements.some(({ status }) => status === 'error') ? EXIT.kit : EXIT[report.verdict];
}
