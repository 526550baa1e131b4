/** Runs the command: certifies once, or repeatedly with `--watch`, writes the report, and returns the exit status. */
import { EXIT } from '../../engine/command-line.ts';
import { UsageError } from '../../engine/errors.ts';
import type { RunningReference } from '../../reference-server/command/child.ts';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { randomSeed } from '../../engine/run/state/context.ts';
import {
  loadDataset,
  loadTarget,
  resolveTarget,
  secretsOf,
  type Target,
} from '../../engine/target/target.ts';
import { prepareDirectory, prepareFile, readText, requirePath, writeAtomically } from '../../engine/files.ts';
import { readKey } from '../report/certificate.ts';
import { certify, type CertifyOptions } from '../certify.ts';
import { changesSince, exitOnNew, readBaseline, readKnownFailures, statesOf } from '../report/changes.ts';
import type { Baseline } from '../report/changes.ts';
import { checkTarget, init } from './check-target.ts';
import { explain, list } from './explain.ts';
import { entryOf, harText, judgeRecording, readHar, targetOfRecording } from './har.ts';
import { isDescribed, kitOptionsOf, replayCommand, SECRET_VARIABLE, type Options } from './options.ts';
import { showProgress } from './progress.ts';
import { startForCertificate } from '../reference.ts';
import { keep, lastRun } from '../render/history.ts';
import { resultsOf } from '../render/service-results.ts';
import { end, writeReport } from '../render/write.ts';
import type { Report } from '../report/report.ts';
import { reasons } from './watch.ts';

interface Io {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  /** Resolves a path of the command line. */
  readonly at: (path: string) => string;
  readonly signal: AbortSignal;
  /** The exit status after an interruption. */
  readonly interruptedStatus: () => number | undefined;
}

export async function run(options: Options, io: Io): Promise<number> {
  const ended = await runMode(options, io);
  if (ended !== undefined) return ended;
  const { at, output } = io;
  const given = await readInputs(options, io);
  await prepareDirectory(at(options.reportDir));
  if (options.history !== undefined) await prepareDirectory(at(options.history), '--history');
  if (options.har !== undefined) await prepareFile(at(options.har), '--har');
  const seed = options.seed ?? randomSeed();
  await using reference = isDescribed(options) ? undefined : await startedReference(options.runs, output);
  const session = { ...given, options, io, seed, reference };
  const first = await certifyOnce(session, given.baseline);
  return options.watch === undefined ? first.status : await runAgain(session, first);
}

/** Prints which database it uses. */
async function startedReference(runs: number | undefined, out: NodeJS.WriteStream) {
  try {
    return await startForCertificate(runs, (line) => {
      if (line.includes('database: ')) out.write(`${line.replace('database: ', '')}\n`);
    });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(
      `name a target (--target FILE, or --init to write one); without one the kit certifies the reference server, which does not start: ${error.message}`,
    );
  }
}

/** Reads the files of the flags before anything is sent. */
async function readInputs(options: Options, { at }: Io) {
  const { baseline, history, fromHar, knownFailures, sign, target, watch } = options;
  const ifGiven = async <T>(path: string | undefined, read: (path: string) => Promise<T>) =>
    path === undefined ? undefined : read(at(path));
  if (typeof watch === 'string') await requirePath(at(watch), '--watch');
  return {
    baseline: await (baseline === undefined ? ifGiven(history, lastRun) : ifGiven(baseline, readBaseline)),
    // The addresses of the target file select the service in a recording.
    recording: await ifGiven(fromHar, async (path) => readHar(path, await ifGiven(target, loadTarget))),
    known: await ifGiven(knownFailures, readKnownFailures),
    key: await ifGiven(sign, async (path) =>
      readKey(await readText(path, '--sign'), `--sign: ${path}`, 'private'),
    ),
  };
}

interface Session extends Awaited<ReturnType<typeof readInputs>> {
  readonly options: Options;
  readonly io: Io;
  readonly seed: number;
  readonly reference: RunningReference | undefined;
}

interface Run {
  readonly report: Report;
  readonly status: number;
}

async function certifyOnce(session: Session, baseline: Baseline | undefined): Promise<Run> {
  const { options, io, seed, recording, known, key, reference } = session;
  const { har, history, only, failFast, deadline, watch } = options;
  const described =
    recording && options.target === undefined
      ? targetOfRecording(recording)
      : await targetOf(options, io, reference);
  const target = { ...described, require: [...new Set([...(described.require ?? []), ...options.require])] };
  io.output.write(
    recording
      ? `judging ${recording.exchanges.length} recorded exchanges with ${target.baseUrl}; nothing is sent\n`
      : `certifying ${[...new Set([target.name, target.baseUrl])].join(' at ')}, seed ${seed}\n`,
  );
  const redactor = createRedactor(secretsOf(target));
  const progress = showProgress(io.output, redactor.redact);
  const entries: object[] = [];
  const failed = baseline?.requirements.filter(({ status }) => status === 'fail').map(({ id }) => id);
  const certifyOptions: CertifyOptions = {
    ...{ ...kitOptionsOf(options), seed, only, failFast, signal: io.signal },
    deadlineMs: deadline && 1000 * deadline,
    first: watch === undefined ? undefined : failed,
    replay: replayCommand(options, seed),
    onProgress: progress.tell,
    ...(har ? { onExchange: (exchange) => entries.push(entryOf(exchange, redactor)) } : {}),
  };
  const certified = recording
    ? await judgeRecording(recording, target, certifyOptions)
    : await certify(target, certifyOptions);
  progress.end();
  const report: Report = {
    ...certified,
    changes: baseline && changesSince(baseline, certified),
    knownFailures: known && statesOf(known, certified),
  };
  const status = await end(resultsOf(report), {
    name: 'certify',
    output: io.output,
    reportDir: options.reportDir,
    async write() {
      await writeReport(report, io.at(options.reportDir), key);
      if (har !== undefined) await writeAtomically(io.at(har), harText(entries));
      if (history !== undefined) await keep(io.at(history), report);
    },
    usual: options.failOn && exitOnNew(report),
  });
  return { report, status: io.interruptedStatus() ?? status };
}

/** Runs again on every request or change, with failed checks first, and prints changes. Returns the last exit status. */
async function runAgain(session: Session, first: Run): Promise<number> {
  const { target, dataset, watch } = session.options;
  const { at, input, output, signal, interruptedStatus } = session.io;
  let { report, status } = first;
  const files = [target, dataset].filter((file) => file !== undefined).map(at);
  const folders = typeof watch === 'string' ? [at(watch)] : [];
  const how = `\nr runs again${files.length + folders.length > 0 ? ', as does a change of files' : ''}; q ends\n`;
  output.write(how);
  for await (const why of reasons({ files, folders, input, signal })) {
    output.write(`\n${why}\n`);
    try {
      ({ report, status } = await certifyOnce(session, report));
    } catch (error) {
      // A target file may be invalid while it is being edited.
      if (!(error instanceof UsageError)) throw error;
      console.error(`certify: ${error.message}`);
    }
    if (!signal.aborted) output.write(how);
  }
  return interruptedStatus() ?? status;
}

/** Prints or writes what a mode asks for. Returns the exit status; undefined without a mode. */
async function runMode(options: Options, io: Io): Promise<number | undefined> {
  const { list: isList, only, explain: name, init: isInit, target = 'target.json' } = options;
  const { output, at, signal, interruptedStatus } = io;
  if (options.checkTarget) {
    const target = await targetOf(options, io);
    const { lines, usable } = await checkTarget(target, { ...kitOptionsOf(options), signal });
    if (interruptedStatus() === undefined) output.write(`${lines.join('\n')}\n`);
    return interruptedStatus() ?? (usable ? 0 : EXIT.incomplete);
  }
  if (isList) output.write(list(only));
  else if (name !== undefined) output.write(explain(name, output.columns));
  else if (isInit) output.write(await init(at(target), target));
  else return undefined;
  return 0;
}

async function targetOf(
  { target: file, dataset, baseUrl, authUrl, clientId }: Options,
  { at }: Io,
  reference?: RunningReference,
): Promise<Target> {
  const clients = { primary: { clientId, clientSecret: `\${${SECRET_VARIABLE}}` } };
  const path = file === undefined ? reference?.file : at(file);
  const target =
    path === undefined ? await resolveTarget({ baseUrl, authUrl, clients }) : await loadTarget(path);
  return dataset === undefined ? target : { ...target, dataset: await loadDataset(at(dataset), '--dataset') };
}
