#!/usr/bin/env node
/** `npm run certify-client`: certifies a client and writes a report. */
import { join } from 'node:path';
import { EXIT, interruption, runCommand } from '../../engine/command-line.ts';
import { calledFrom } from '../../engine/package.ts';
import { prepareDirectory } from '../../engine/files.ts';
import { writeFiles } from '../render/write.ts';
import { parseArguments, type Arguments } from './arguments.ts';
import { clientByHand, type Client, commandClient } from './client.ts';
import { certifyClient } from './certify-client.ts';
import { terminal } from '../render/terminal.ts';
import { resultsOf, type ClientReport } from './report.ts';

const at = calledFrom('certify-client');
const interrupted = interruption();

await runCommand('certify-client', main);

async function main(): Promise<number> {
  const args = parseArguments(process.argv.slice(2));
  if (!args) return 0;
  const reportDir = at(args.reportDir);
  await prepareDirectory(reportDir);
  const report = await certifyClient(clientOf(args, reportDir), {
    ...args,
    name: args.name ?? args.command ?? `a client started by hand, port ${args.listen}`,
    signal: interrupted.signal,
    tell: ({ status, name }) => console.log(`${status.padEnd(8)}  ${name}`),
  });
  const results = resultsOf(report);
  await writeFiles(report, results, reportDir);
  const reportPath = join(args.reportDir, 'client.html');
  process.stdout.write(`\n${terminal(results, { columns: process.stdout.columns, reportPath })}`);
  return interrupted.status() ?? exitOf(report);
}

function clientOf({ command, listen }: Arguments, reportDir: string): Client {
  return command !== undefined
    ? commandClient(command, at('.'))
    : clientByHand(join(reportDir, `client-${listen}`), console.log);
}

function exitOf({ verdict, situations }: ClientReport): number {
  if (verdict === 'non-conformant') return EXIT['non-conformant'];
  return situations.some(({ status }) => status === 'error') ? EXIT.kit : EXIT[verdict];
}
