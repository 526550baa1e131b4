#!/usr/bin/env node
/** `npm run reference-server`: starts a reference server. */
import { calledFrom, missingPackage } from '../engine/package.ts';
import { parseFlags } from './command/flags.ts';

// Paths are relative to the directory where the command was called.
process.chdir(calledFrom('reference-server')('.'));

try {
  const flags = parseFlags(process.argv.slice(2), process.env);
  // Imported only here: the database is an optional dependency of the package.
  if (flags?.listFaults) await listFaults(flags.listFaults === true ? undefined : flags.listFaults);
  else if (flags) await (await import('./command/serve.ts')).serve(flags);
} catch (error) {
  const missing = missingPackage(error);
  console.error(
    `reference server: ${missing ? `it needs ${missing} and the other optional peers of this package: install them next to it` : (error as Error).message}`,
  );
  process.exitCode = 2;
}

/** Prints headings to standard error, so that standard output has only names. */
async function listFaults(id?: string): Promise<void> {
  const { namesOf } = await import('./command/fault-by-name.ts');
  for (const { heading, names } of namesOf(id)) {
    console.error(`# ${heading}`);
    console.log(names.join('\n'));
  }
}

// Everything has stopped; only a container engine that did not answer could keep the process alive.
process.exit();
