/** Paths are relative to where the command was given, which npm leaves for the package's folder (`npm --prefix`). */
import { resolve } from 'node:path';

/** What makes absolute paths of those that a user gave to the npm script of that name. */
export function calledFrom(script: string): (path: string) => string {
  const folder = process.env['npm_lifecycle_event'] === script ? process.env['INIT_CWD'] : undefined;
  return (path) => resolve(folder ?? '.', path);
}

/** How a command is called: compiled, the kit is an installed package. */
export const commandName = (script: string): string =>
  import.meta.filename.endsWith('.js') ? `npx screenings-${script}` : `npm run ${script} --`;
