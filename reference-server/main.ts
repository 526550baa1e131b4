#!/usr/bin/env node
/** `npm run reference-server`: the reference server by itself. */
import { calledFrom } from '../engine/called-from.ts';
import { missingPackage } from '../engine/package.ts';
import { parseFlags } from './flags.ts';

// Paths are relative to where the command was given.
process.chdir(calledFrom('reference-server')('.'));

try {
  const flags = parseFlags(process.argv.slice(2), process.env);
  // Loaded only here: the database is an optional dependency of the package.
  if (flags?.listFaults) await listFaults(flags.listFaults === true ? undefined : flags.listFaults);
  else if (flags) await (await import('./serve.ts')).serve(flags);
} catch (error) {
  const missing = missingPackage(error);
  console.error(
    `reference server: ${missing ? `it needs ${missing} and the other optional peers of this package: install them next to it` : (error as Error).message}`,
  );
  process.exitCode = 2;
}

/** Headings go to standard error, so that each line of the output is a name. */
async function listFaults(id?: string): Promise<void> {
  const { namesOf } = await import('./fault-by-name.ts');
  for (const { heading, names } of namesOf(id)) {
    console.error(`# ${heading}`);
    console.log(names.join('\n'));
  }
}

// All is stopped; only a container engine that never answered may still be waited for.
process.exit();
