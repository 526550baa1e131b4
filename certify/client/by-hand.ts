/** A client that the user starts by hand: prints the values and waits for its end. */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { quote } from '../../engine/run/evidence/shell.ts';
import { environmentOf, type Client } from './client.ts';

const LOOK_EVERY_MS = 200;

/**
 * Reads the client's output and exit status from files in `directory`, as named in the printed command. A line on
 * standard input (the status; empty means 0) also ends a situation.
 */
export function clientByHand(directory: string, tell: (text: string) => void): Client {
  const typed: string[] = [];
  /** The variables that the previous situation set. */
  let told: string[] = [];
  createInterface({ input: process.stdin }).on('line', (line) => typed.push(line));

  return async (given, signal, situation) => {
    await mkdir(directory, { recursive: true });
    const [output, status] = ['ndjson', 'status'].map((end) => join(directory, `${situation}.${end}`)) as [
      string,
      string,
    ];
    await Promise.all([output, status].map((file) => rm(file, { force: true })));
    typed.length = 0;
    tell(`\n# ${situation}`);
    const environment = environmentOf(given);
    for (const name of told.filter((one) => !(one in environment))) tell(`unset ${name}`);
    for (const [name, value] of Object.entries(environment)) tell(`export ${name}=${quote(value)}`);
    told = Object.keys(environment);
    tell(`# then: YOUR-CLIENT > ${quote(output)}; echo $? > ${quote(status)}`);
    tell('# or press Enter here when it is through (its exit status first, if not 0)');
    for (;;) {
      const entered = /^\s*(\d*)\s*$/.exec(typed.shift() ?? 'nothing')?.[1];
      // The file may exist before it is complete.
      const written = /^(\d+)\s/.exec(await readFile(status, 'utf8').catch(() => ''))?.[1];
      const said = entered ?? written;
      if (said !== undefined) {
        const stdout = await readFile(output, 'utf8').catch(() => undefined);
        return { status: Number(said), stdout, stderr: '' };
      }
      if (signal.aborted) return { status: undefined, stdout: undefined, stderr: '' };
      await sleep(LOOK_EVERY_MS);
    }
  };
}
