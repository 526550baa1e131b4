#!/usr/bin/env node
/** `npm run certify-client`: certifies a client and writes a report. */
import { join } from 'node:path';
import { interruption, runCommand } from '../../engine/command-line.ts';
import { calledFrom } from '../../engine/package.ts';
import { prepareDirectory } from '../../engine/files.ts';
import { end, writeFiles } from '../render/write.ts';
import { parseArguments } from './arguments.ts';
import { clientByHand, commandClient } from './client.ts';
import { certifyClient } from './certify-client.ts';
import { resultsOf } from './report.ts';

const at = calledFrom('certify-client');
const interrupted = interruption();

await runCommand('certify-client', async () => {
  const args = parseArguments(process.argv.slice(2));
  if (!args) return 0;
  const { command, listen } = args;
  const reportDir = at(args.reportDir);
  await prepareDirectory(reportDir);
  const client =
    command === undefined
      ? clientByHand(join(reportDir, `client-${listen}`), console.log)
      : commandClient(command, at('.'));
  const report = await certifyClient(client, {
    ...args,
    name: args.name ?? command ?? `a client started by hand, port ${listen}`,
    signal: interrupted.signal,
    tell: ({ status, name }) => console.log(`${status.padEnd(8)}  ${name}`),
  });
  const results = resultsOf(report);
  const status = await end(results, {
    name: 'certify-client',
    output: process.stdout,
    reportDir: args.reportDir,
    write: () => writeFiles(report, results, reportDir),
  });
  return interrupted.status() ?? status;
});
