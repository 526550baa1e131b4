/** `npm run certify-client`: judges a client, and leaves a report. */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { UsageError } from '../../fixtures/target/usage.ts';
import { parseArguments, type Arguments } from './arguments.ts';
import { clientByHand } from './by-hand.ts';
import { certifyClient } from './certify-client.ts';
import type { Client } from './client.ts';
import { commandClient } from './command.ts';
import { terminal } from './render/terminal.ts';
import { writeClientReport } from './render/write.ts';
import type { ClientReport } from './report.ts';

/** As of `certify`: only 1 blames the client, only 0 is green. */
const EXIT = {
  conformant: 0,
  'non-conformant': 1,
  usage: 2,
  incomplete: 3,
  kit: 4,
  interrupted: 130,
} as const;

/** Where the command was given, which npm leaves for the package's folder (`npm --prefix`). */
const CALLED_FROM =
  (process.env['npm_lifecycle_event'] === 'certify-client' ? process.env['INIT_CWD'] : undefined) ?? '.';

process.exitCode = await main().catch((error: unknown) => {
  if (error instanceof UsageError) {
    console.error(`certify-client: ${error.message}`);
    return EXIT.usage;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  console.error(`certify-client: the kit itself failed: ${text}`);
  return EXIT.kit;
});

async function main(): Promise<number> {
  const args = parseArguments(process.argv.slice(2));
  if (!args) return 0;
  const reportDir = resolve(CALLED_FROM, args.reportDir);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
  const report = await certifyClient(clientOf(args, reportDir), {
    name: args.name ?? args.command ?? `a client started by hand, port ${args.listen}`,
    kit: await kit(),
    ...(args.only ? { only: args.only } : {}),
    // One port is one situation at a time, and people take their time.
    concurrency: args.listen === undefined ? args.concurrency : 1,
    patienceMs: args.listen === undefined ? 1000 * args.timeout : 0,
    ...(args.listen === undefined ? {} : { port: args.listen }),
    signal: interrupted.signal,
    tell: (name, result) => {
      if (result) console.log(`${result.status.padEnd(8)}  ${name}`);
    },
  });
  await writeClientReport(report, reportDir);
  const reportPath = join(args.reportDir, 'client.html');
  process.stdout.write(`\n${terminal(report, { columns: process.stdout.columns, reportPath })}`);
  return interrupted.signal.aborted ? EXIT.interrupted : exitOf(report);
}

function clientOf({ command, listen }: Arguments, reportDir: string): Client {
  return command !== undefined
    ? commandClient(command, resolve(CALLED_FROM))
    : clientByHand(join(reportDir, `client-${listen}`), console.log);
}

async function kit(): Promise<ClientReport['kit']> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as ClientReport['kit'];
  return { name, version };
}

function exitOf({ verdict, situations }: ClientReport): number {
  if (verdict === 'non-conformant') return EXIT['non-conformant'];
  return situations.some(({ status }) => status === 'error') ? EXIT.kit : EXIT[verdict];
}
