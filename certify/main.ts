#!/usr/bin/env node
/** `npm run certify`: certifies a target and leaves a report. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { JWK } from 'jose';
import { readDataset } from '../engine/data/dataset.ts';
import { EXIT, interruption, runCommand } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { calledFrom, missingPackage } from '../engine/package.ts';
import { createRedactor } from '../engine/run/evidence/redact.ts';
import { loadTarget, resolveTarget, secretsOf, type Target } from '../engine/target/target.ts';
import { readText } from '../engine/target/usage.ts';
import { isDescribed, parseArguments, replayCommand, SECRET_VARIABLE, type Arguments } from './arguments.ts';
import {
  changesSince,
  exitOnNew,
  readBaseline,
  readKnownFailures,
  standOf,
  type Baseline,
  type KnownFailures,
  keep,
  lastRun,
} from './changes.ts';
import { readKey } from './certificate.ts';
import { certify, type CertifyOptions } from './certify.ts';
import { judgeRecording, targetOfRecording, entryOf, harText, readHar, type Recording } from './har.ts';
import { showProgress } from './progress.ts';
import { checkTarget, explain, init, list } from './modes.ts';
import type { ReferenceServer } from './reference.ts';
import { resultsOf } from './render/of-report.ts';
import { terminal } from './render/terminal.ts';
import { prepareDirectory, prepareFile, writeAtomically, writeReport } from './render/write.ts';
import type { Report } from './report.ts';
import { reasons } from './watch.ts';

// By default the heap grows to four times the necessary size before it is collected.
setFlagsFromString('--heap-growing-percent=50');

const at = calledFrom('certify');

const interrupted = interruption();

await runCommand('certify', main);

async function main(): Promise<number> {
  const args = parseArguments(process.argv.slice(2));
  if (!args) return 0;
  if (args.mode) return runMode(args);
  const { baseline: before, knownFailures } = args;
  const history = args.history === undefined ? undefined : at(args.history);
  const baseline =
    before !== undefined
      ? await readBaseline(at(before))
      : history === undefined
        ? undefined
        : await lastRun(history);
  const recording =
    args.fromHar === undefined ? undefined : await readHar(at(args.fromHar), await addressesOf(args));
  const known = knownFailures === undefined ? undefined : await readKnownFailures(at(knownFailures));
  const key = args.sign === undefined ? undefined : await readSigningKey(at(args.sign));
  await prepareDirectory(at(args.reportDir));
  if (history) await prepareDirectory(history, '--history');
  if (args.har) await prepareFile(at(args.har), '--har');
  const directory = await mkdtemp(join(tmpdir(), 'screenings-certify-'));
  let reference: ReferenceServer | undefined;
  try {
    const seed = args.kit.seed ?? Math.floor(Math.random() * 2 ** 31);
    if (!isDescribed(args)) {
      // Imported only here, because certifying another target needs no database.
      const { startReference } = await import('./reference.ts').catch(withoutPackages);
      reference = await startReference(directory, { runs: args.kit.runs });
      console.log(`reference server: ${reference.databaseDescription}`);
    }
    const all = { args, seed, recording, known, key, history, reference, directory };
    const run = await runOnce(all, baseline);
    return args.watch === undefined ? run.status : await runAgain(all, run);
  } finally {
    await reference?.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

interface Session {
  readonly args: Arguments;
  readonly seed: number;
  readonly recording: Recording | undefined;
  readonly known: KnownFailures | undefined;
  readonly key: JWK | undefined;
  readonly history: string | undefined;
  readonly reference: ReferenceServer | undefined;
  readonly directory: string;
}

interface Run {
  readonly report: Report;
  readonly status: number;
}

async function runOnce(session: Session, baseline: Baseline | undefined): Promise<Run> {
  const { args, seed, recording, known, key, history, reference, directory } = session;
  const target =
    recording && !args.target ? targetOfRecording(recording) : await targetOf(args, reference, directory);
  console.log(
    recording
      ? `judging ${recording.exchanges.length} recorded exchanges with ${target.baseUrl}; nothing is sent`
      : `certifying ${target.name} at ${target.baseUrl}, seed ${seed}`,
  );
  const redactor = createRedactor(secretsOf(target));
  const progress = showProgress(process.stdout, redactor.redact);
  const entries: object[] = [];
  const failed = baseline?.requirements.filter(({ status }) => status === 'fail').map(({ id }) => id);
  const options: CertifyOptions = {
    ...args.kit,
    seed,
    only: args.only,
    first: args.watch === undefined ? undefined : failed,
    require: args.require,
    failFast: args.failFast,
    deadlineMs: args.deadlineMs,
    replay: replayCommand(args, seed),
    signal: interrupted.signal,
    onProgress: progress.tell,
    ...(args.har ? { onExchange: (exchange) => entries.push(entryOf(exchange, redactor)) } : {}),
  };
  const certified = recording
    ? await judgeRecording(recording, target, options)
    : await certify(target, options);
  progress.end();
  const report: Report = {
    ...certified,
    changes: baseline && changesSince(baseline, certified),
    knownFailures: known && standOf(known, certified),
  };
  const written = await writeReport(report, at(args.reportDir), key)
    .then(async () => {
      if (args.har) await writeAtomically(at(args.har), harText(entries));
      if (history) await keep(history, report);
    })
    .catch((error: Error) => error);
  process.stdout.write(
    `\n${terminal(resultsOf(report), {
      columns: process.stdout.columns,
      ...(written instanceof Error ? {} : { reportPath: join(args.reportDir, 'report.html') }),
    })}`,
  );
  if (written instanceof Error) console.error(`certify: ${written.message}`);
  const status = interrupted.status();
  if (status !== undefined) return { report, status };
  if (written instanceof Error && report.verdict === 'conformant') return { report, status: EXIT.kit };
  return { report, status: exitOf(report, args.failOnNew) };
}

/** Runs again on every request or change, with failed checks first, and prints changes. Returns the last exit status. */
async function runAgain(session: Session, first: Run): Promise<number> {
  const { target, dataset, watch } = session.args;
  let { report, status } = first;
  const files = [target, dataset].filter((file) => file !== undefined).map(at);
  const folders = typeof watch === 'string' ? [at(watch)] : [];
  const how = `r runs again${files.length + folders.length > 0 ? ', as does a change of files' : ''}; q ends`;
  console.log(`\n${how}`);
  const { signal } = interrupted;
  for await (const why of reasons({ files, folders, input: process.stdin, signal })) {
    console.log(`\n${why}`);
    try {
      ({ report, status } = await runOnce(session, report));
    } catch (error) {
      // A target file may be invalid while it is being edited.
      if (!(error instanceof UsageError)) throw error;
      console.error(`certify: ${error.message}`);
    }
    if (!signal.aborted) console.log(`\n${how}`);
  }
  return interrupted.status() ?? status;
}

/** The addresses of the target file, which select the service in a recording. */
async function addressesOf(args: Arguments): Promise<Pick<Target, 'baseUrl' | 'authUrl'> | undefined> {
  return args.target ? loadTarget(at(args.target)) : undefined;
}

async function readSigningKey(path: string): Promise<JWK> {
  return readKey(await readText(path, '--sign'), `--sign: ${path}`, 'private');
}

/** The dependencies of the reference server are optional peers of the package. */
function withoutPackages(error: unknown): never {
  const missing = missingPackage(error);
  if (!missing) throw error;
  throw new UsageError(
    `name a target (--target FILE, or --init to write one); the reference server, which is certified without one, needs ${missing} and the other optional peers of this package`,
  );
}

async function runMode(args: Arguments): Promise<number> {
  const { mode, explain: id, target = 'target.json' } = args;
  const out = process.stdout;
  if (mode === 'list' || mode === 'explain') {
    out.write(mode === 'list' ? list() : explain(id!, out.columns));
    return 0;
  }
  if (mode === 'init') {
    out.write(await init(at(target), target, { input: process.stdin, output: out }));
    return 0;
  }
  const { lines, usable } = await checkTarget(await targetOf(args, undefined, '.'), {
    ...args.kit,
    signal: interrupted.signal,
  });
  const status = interrupted.status();
  if (status !== undefined) return status;
  out.write(`${lines.join('\n')}\n`);
  return usable ? 0 : EXIT.incomplete;
}

async function targetOf(
  args: Arguments,
  reference: ReferenceServer | undefined,
  directory: string,
): Promise<Target> {
  try {
    const target = args.target
      ? await loadTarget(at(args.target))
      : await resolveTarget(reference?.target() ?? targetFileOf(args), { directory });
    return args.dataset ? { ...target, dataset: await readDataset(at(args.dataset)) } : target;
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}

function targetFileOf({ baseUrl, authUrl, clientId }: Arguments): unknown {
  return { baseUrl, authUrl, clients: { primary: { clientId, clientSecret: `\${${SECRET_VARIABLE}}` } } };
}

function exitOf(report: Report, failOnNew: boolean): number {
  const usual = failOnNew ? exitOnNew(report) : EXIT[report.verdict];
  if (usual === EXIT['non-conformant']) return usual;
  return report.requirements.some(({ status }) => status === 'error') ? EXIT.kit : usual;
}
