/** `npm run load` and `npm run bench`. */
import { visible } from '../certify/render/markup.ts';
import { calledFrom } from '../engine/package.ts';
import { interruption, runCommand } from '../engine/command-line.ts';
import { run } from './command-line.ts';
import { EXIT } from './result.ts';
import { Unreachable } from './run/target.ts';

const argv = process.argv.slice(2);
// Paths are relative to the directory where the command was called (`npm --prefix kit run load`).
process.chdir(calledFrom(argv[0] === 'bench' ? 'bench' : 'load')('.'));

/** On a signal, a scenario reports its results so far; child processes end with this process. */
const { signal, status } = interruption();
/** Removes control characters, which may come from the target. */
const tell = (line: string): void => console.error(visible(line));

await runCommand('load', async () => {
  const ended = await run(argv, { tell, signal }).catch(failed);
  return status() ?? ended;
});

function failed(error: unknown): number {
  if (signal.aborted) tell('interrupted');
  else if (error instanceof Unreachable) tell(`cannot load the target: ${error.message}`);
  else throw error;
  return EXIT.void;
}
