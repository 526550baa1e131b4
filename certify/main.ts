#!/usr/bin/env node
/** `npm run certify`: certifies a target and leaves a report. */
import { setFlagsFromString } from 'node:v8';
import { interruption, runCommand } from '../engine/command-line.ts';
import { calledFrom } from '../engine/package.ts';
import { parseOptions } from './command/options.ts';
import { run } from './command/run-certify.ts';

// By default the heap grows to four times the necessary size before it is collected.
setFlagsFromString('--heap-growing-percent=50');

const at = calledFrom('certify');
const { signal, status: interruptedStatus } = interruption();

await runCommand('certify', async () => {
  const options = parseOptions(process.argv.slice(2), process.env);
  const { stdin: input, stdout: output } = process;
  return options ? run(options, { input, output, at, signal, interruptedStatus }) : 0;
});
