/** `npm run certify`: certifies a target and leaves a report. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CHECKPOINT, RESULT, targetOf, type RunFile } from '../specs/session.ts';
import { startReferenceServer, type ReferenceServer } from '../reference-server/start.ts';
import { parseArguments, replayCommand, type Arguments } from './arguments.ts';
import { terminal } from './render/terminal.ts';
import { writeReport } from './render/write.ts';
import type { Report } from './report.ts';
import { UsageError } from '../fixtures/errors.ts';

/** See the README: only 1 blames the target, only 0 is green. */
const EXIT = { conformant: 0, 'non-conformant': 1, usage: 2, incomplete: 3, kit: 4 } as const;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Low enough to be met in a second, high enough to be no hindrance. */
const REFERENCE_LIMIT = { limit: 150, windowMs: 1_000, algorithm: 'fixed-window' } as const;

/** Paths are relative to where the command was given, which npm leaves for the package's folder (`npm --prefix`). */
const CALLED_FROM = process.env['npm_lifecycle_event'] === 'certify' ? process.env['INIT_CWD'] : undefined;
const at = (path: string): string => resolve(CALLED_FROM ?? '.', path);

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
  // The specs are reported under the terminal as well; here it is waited for what they leave.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const directory = await mkdtemp(join(tmpdir(), 'screenings-certify-'));
  let reference: ReferenceServer | undefined;
  try {
    const seed = args.kit.seed ?? Math.floor(Math.random() * 2 ** 31);
    if (!isDescribed(args)) reference = await startReference(directory);
    const run: RunFile = {
      target: sourceOf(args, reference, directory),
      dataset: args.dataset ? at(args.dataset) : undefined,
      only: args.only,
      options: { ...args.kit, seed },
      replay: replayCommand(args, seed),
      directory,
    };
    const target = await targetOf(run).catch((error: unknown) => {
      throw error instanceof UsageError ? error : new UsageError((error as Error).message);
    });
    console.log(`certifying ${target.name} at ${target.baseUrl}, seed ${seed}`);
    await runSpecs(run);
    const report = await leftBy(run);
    if (!report) throw new Error('the specs ended without a result');
    await writeReport(report, at(args.reportDir));
    process.stdout.write(
      `\n${terminal(report, { columns: process.stdout.columns, reportPath: join(args.reportDir, 'report.html') })}`,
    );
    return exitOf(report);
  } finally {
    await reference?.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

function isDescribed(args: Arguments): boolean {
  return args.target !== undefined || args.baseUrl !== undefined;
}

async function startReference(directory: string): Promise<ReferenceServer> {
  const server = await startReferenceServer({
    eventsFile: join(directory, 'events.ndjson'),
    faultSignals: true,
    rateLimit: REFERENCE_LIMIT,
  });
  console.log(`reference server: ${server.databaseDescription}`);
  return server;
}

function sourceOf(
  args: Arguments,
  reference: ReferenceServer | undefined,
  directory: string,
): RunFile['target'] {
  if (args.target) return { file: at(args.target) };
  if (reference) return { content: reference.target(), directory };
  const { baseUrl, authUrl, clientId } = args;
  const clients = { primary: { clientId, clientSecret: '${SCREENINGS_CLIENT_SECRET}' } };
  return { content: { baseUrl, authUrl, clients }, directory };
}

/** Playwright in a process of its own; what it finds is left in the run's directory. */
async function runSpecs(run: RunFile): Promise<void> {
  const file = join(run.directory, 'run.json');
  await writeFile(file, JSON.stringify(run), { mode: 0o600 });
  const cli = createRequire(import.meta.url).resolve('@playwright/test/cli');
  const args = [
    'test',
    '--project=certify',
    '--workers=1',
    `--reporter=${join(ROOT, 'certify/progress.ts')}`,
  ];
  args.push(`--output=${join(run.directory, 'output')}`, `--config=${join(ROOT, 'playwright.config.ts')}`);
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, SCREENINGS_RUN: file },
  });
  await new Promise<void>((done, fail) => child.once('exit', () => done()).once('error', fail));
}

/** The result, or what the run had got to. */
async function leftBy({ directory }: RunFile): Promise<Report | undefined> {
  for (const name of [RESULT, CHECKPOINT]) {
    const text = await readFile(join(directory, name), 'utf8').catch(() => undefined);
    if (text) return JSON.parse(text) as Report;
  }
  return undefined;
}

function exitOf(report: Report): number {
  if (report.verdict === 'non-conformant') return EXIT['non-conformant'];
  return report.requirements.some(({ status }) => status === 'error') ? EXIT.kit : EXIT[report.verdict];
}
