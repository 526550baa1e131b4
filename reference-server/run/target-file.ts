/** Writes a server's target file, with what a fault changes in what the kit is told. */
import { chmod, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { formatInstant } from '../../engine/data/instant.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import type { Outage } from '../store/running-postgres.ts';
import type { ReferenceTarget } from './target.ts';

type Content = Record<string, unknown>;

/** The paths in the file are relative to itself. It holds secrets: it is for the owner's eyes. */
export async function writeTargetFile(path: string, content: Content): Promise<void> {
  const directory = dirname(resolve(path));
  const written: Content = { ...content };
  for (const name of ['dataset', 'secondDataset', 'unfinished', 'events', 'ca']) {
    if (typeof written[name] === 'string') written[name] = relative(directory, written[name]);
  }
  await writePrivate(path, `${JSON.stringify(written, null, 2)}\n`);
}

/** The target file's content as a fault changes it. */
interface ChangedTarget {
  readonly content: Content;
  /** What the commands that break and heal the server are to do, where the fault brings a switch of its own. */
  readonly outage?: Outage;
  /** Members that the fault changes in a way that no file can say; they are as without it. */
  readonly unsaid: readonly string[];
}

/** What the fault makes of captured events and datasets is written to files whose paths begin with `stem`. */
export async function changedTarget(
  reference: ReferenceTarget,
  change: (target: Target) => Target,
  stem: string,
): Promise<ChangedTarget> {
  const before = await resolveTarget(reference);
  const target = change(before);
  const content: Content = { ...reference };
  const unsaid: string[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(target)]) as Set<keyof Target>) {
    // The commands stay; the server does what they ask for.
    if (target[name] === before[name] || name === 'fault') continue;
    const said = await sayMember(target, name, stem);
    if (said === UNSAYABLE) unsaid.push(name);
    else content[name] = said;
  }
  const { fault } = target;
  const outage = fault && fault !== before.fault ? { begin: fault.start, end: fault.stop } : undefined;
  return { content, unsaid, ...(outage ? { outage } : {}) };
}

const UNSAYABLE = Symbol('unsayable');

/** A member of a target as it stands in a target file. */
async function sayMember(target: Target, name: keyof Target, stem: string): Promise<unknown> {
  const { window, rateLimit } = target;
  switch (name) {
    case 'events':
      return target.events && linesIn(`${stem}events-of-fault.ndjson`, target.events);
    case 'dataset':
    case 'secondDataset':
    case 'unfinished':
      return (
        target[name] &&
        linesIn(
          `${stem}${name}-of-fault.ndjson`,
          target[name].map(({ json }) => json),
        )
      );
    case 'window':
      return window && { from: formatInstant(window.from), to: formatInstant(window.to) };
    case 'rateLimit':
      return rateLimit && { probe: true, ...rateLimit };
    default:
      return typeof target[name] === 'function' ? UNSAYABLE : target[name];
  }
}

async function linesIn(path: string, lines: readonly string[]): Promise<string> {
  await writePrivate(path, lines.map((line) => `${line}\n`).join(''));
  return path;
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  // The mode above is that of a new file only.
  await chmod(path, 0o600);
}
