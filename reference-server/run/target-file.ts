/** Writes a server's target file, including the changes that a fault makes to it. */
import { chmod, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { formatInstant } from '../../engine/data/instant.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import type { Outage } from '../store/running-postgres.ts';
import type { ReferenceTarget } from './target.ts';

type Content = Record<string, unknown>;

/** Paths in the file are relative to it. It contains secrets, so only its owner may read it. */
export async function writeTargetFile(path: string, content: Content): Promise<void> {
  const directory = dirname(resolve(path));
  const written: Content = { ...content };
  for (const name of ['dataset', 'secondDataset', 'unfinished', 'events', 'ca']) {
    if (typeof written[name] === 'string') written[name] = relative(directory, written[name]);
  }
  await writePrivate(path, `${JSON.stringify(written, null, 2)}\n`);
}

/** The target file's content, changed by a fault. */
interface ChangedTarget {
  readonly content: Content;
  /** The effect of the fault commands, if the fault changes it. */
  readonly outage?: Outage;
  /** Members that the fault changes in a way that a file cannot express; they stay unchanged. */
  readonly notSerializable: readonly string[];
}

/** Writes events and datasets that the fault changes to files whose paths start with `stem`. */
export async function changedTarget(
  reference: ReferenceTarget,
  change: (target: Target) => Target,
  stem: string,
): Promise<ChangedTarget> {
  const before = await resolveTarget(reference);
  const target = change(before);
  const content: Content = { ...reference };
  const notSerializable: string[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(target)]) as Set<keyof Target>) {
    // The commands stay the same; their effect changes (`outage`).
    if (target[name] === before[name] || name === 'fault') continue;
    const value = await serializeMember(target, name, stem);
    if (value === NOT_SERIALIZABLE) notSerializable.push(name);
    else content[name] = value;
  }
  const { fault } = target;
  const outage = fault && fault !== before.fault ? { begin: fault.start, end: fault.stop } : undefined;
  return { content, notSerializable, ...(outage ? { outage } : {}) };
}

const NOT_SERIALIZABLE = Symbol('not serializable');

/** The value of a target's member in the target file. */
async function serializeMember(target: Target, name: keyof Target, stem: string): Promise<unknown> {
  const { window, rateLimit } = target;
  switch (name) {
    case 'events':
      return target.events && writeLines(`${stem}events-of-fault.ndjson`, target.events);
    case 'dataset':
    case 'secondDataset':
    case 'unfinished':
      return (
        target[name] &&
        writeLines(
          `${stem}${name}-of-fault.ndjson`,
          target[name].map(({ json }) => json),
        )
      );
    case 'window':
      return window && { from: formatInstant(window.from), to: formatInstant(window.to) };
    case 'rateLimit':
      return rateLimit && { probe: true, ...rateLimit };
    default:
      return typeof target[name] === 'function' ? NOT_SERIALIZABLE : target[name];
  }
}

async function writeLines(path: string, lines: readonly string[]): Promise<string> {
  await writePrivate(path, lines.map((line) => `${line}\n`).join(''));
  return path;
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  // The mode above applies to new files only.
  await chmod(path, 0o600);
}
