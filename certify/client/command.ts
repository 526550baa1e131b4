/** A client that is a shell command, started once per situation. */
import { UsageError } from '../../engine/errors.ts';
import { quote } from '../../engine/run/evidence/shell.ts';
import { spawnGuarded } from '../../engine/guarded.ts';
import { environmentOf, valuesOf, type Client, type Ended } from './client.ts';
import type { Given } from './stage.ts';

const MOST_OUTPUT = 64 * 1024 * 1024;
/** The time between SIGTERM and SIGKILL. */
const GRACE_MS = 1_500;

/** @param directory the working directory of the command */
export function commandClient(command: string, directory: string): Client {
  return async (given, signal) => {
    const child = spawnGuarded('/bin/sh', ['-c', fillIn(command, given)], {
      cwd: directory,
      env: { ...ownEnvironment(), ...environmentOf(given) },
    });
    const kill = (name: NodeJS.Signals): void => {
      try {
        process.kill(-child.pid!, name);
      } catch {
        // The process has already ended.
      }
    };
    const stop = (): void => {
      kill('SIGTERM');
      setTimeout(() => kill('SIGKILL'), GRACE_MS).unref();
    };
    signal.addEventListener('abort', stop, { once: true });
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (piece: string) => {
        if (texts[name].length < MOST_OUTPUT) texts[name] += piece;
      });
    }
    const ended = await new Promise<Ended>((resolve, reject) => {
      child.once('error', reject);
      // Kills processes that the client left running, because they keep its output open.
      child.once('exit', () => setTimeout(() => kill('SIGKILL'), GRACE_MS).unref());
      child.once('close', (code) => resolve({ status: code ?? 128, ...texts }));
    });
    signal.removeEventListener('abort', stop);
    kill('SIGKILL');
    if (signal.aborted) return { ...ended, status: undefined };
    if (ended.status === 126 || ended.status === 127) {
      throw new UsageError(`--command: ${ended.stderr.trim().split('\n').at(-1) ?? 'it can’t be started'}`);
    }
    return ended;
  };
}

/** The environment without variables for another client, and without a proxy to the local servers. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('SCREENINGS_'));
  const around = [process.env['NO_PROXY'], process.env['no_proxy'], '127.0.0.1', 'localhost'];
  const list = around.filter(Boolean).join(',');
  return { ...Object.fromEntries(kept), NO_PROXY: list, no_proxy: list };
}

/** Replaces `{base_url}` and similar by quoted shell words; a missing value becomes an empty word. */
export function fillIn(command: string, given: Given): string {
  const values = valuesOf(given);
  return command.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? quote(String(values[name] ?? '')) : whole,
  );
}
