#!/usr/bin/env node
/** `npm run reference-server`: starts a reference server. */
import { runCommand } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { calledFrom, missingPackage } from '../engine/package.ts';
import { parseFlags } from './command/flags.ts';

// Paths are relative to the directory where the command was called.
process.chdir(calledFrom('reference-server')('.'));

await runCommand('reference server', async () => {
  try {
    const flags = parseFlags(process.argv.slice(2), process.env);
    // Imported only here: the database is an optional dependency of the package.
    if (flags?.listFaults) {
      const { namesOf } = await import('./command/fault-by-name.ts');
      for (const { heading, names } of namesOf(flags.listFaults === true ? undefined : flags.listFaults)) {
        // To standard error, so that standard output has only names.
        console.error(`# ${heading}`);
        console.log(names.join('\n'));
      }
    } else if (flags) await (await import('./command/serve.ts')).serve(flags);
    return 0;
  } catch (error) {
    const missing = missingPackage(error);
    throw new UsageError(missing ? `it needs ${missing}` : (error as Error).message);
  }
});
