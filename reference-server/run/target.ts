/** A reference server's target file: its content, with the changes that a fault makes to it. */
import { chmod, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { formatInstant } from '../../engine/data/instant.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import type { Outage } from '../store/postgres-embedded.ts';
import type { Operations } from './operations.ts';
import type { ServiceParts } from '../parts.ts';
import type { ClientRole, Provisioned } from './provisioning.ts';
import type { RateLimit } from '../http/rate-limit.ts';

export interface TargetClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
}

/** Paths are absolute. */
export interface ReferenceTarget {
  readonly name: string;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clients: { readonly primary: TargetClient } & Partial<Record<ClientRole, TargetClient>>;
  readonly window?: { readonly from: string; readonly to: string };
  readonly dataset?: string;
  readonly secondDataset?: string;
  readonly events?: string;
  readonly expiredToken: string;
  readonly errorCodePointer: string;
  /** File of the certificate, if it is self-signed. */
  readonly ca?: string;
  readonly rateLimit?: {
    readonly probe: true;
    readonly maxRequests: number;
    readonly maxSeconds: number;
  };
  readonly fault?: { readonly start: string; readonly stop: string };
  /** Shell command that stores the dataset lines on its standard input. */
  readonly ingest: string;
}

interface Described {
  readonly rateLimit?: RateLimit;
  readonly eventsFile?: string;
  /** Whether the target file has the commands for an outage. */
  readonly faultCommands: boolean;
  readonly ca?: string;
}

export async function describeTarget(
  parts: ServiceParts,
  { set, window, files }: Provisioned,
  operations: Operations,
  { rateLimit, eventsFile, faultCommands, ca }: Described,
): Promise<ReferenceTarget> {
  const clients: Partial<Record<ClientRole, TargetClient>> = {};
  for (const { role, clientId, clientSecret, tenantId } of set.clients) {
    if (role) clients[role] = { clientId, clientSecret, tenantId };
  }
  const { primary } = clients;
  if (!primary) throw new Error('the provisioning has no client with the role "primary"');
  return {
    name: 'reference server',
    baseUrl: parts.baseUrl,
    authUrl: parts.authUrl,
    clients: { ...clients, primary },
    window,
    ...files,
    events: eventsFile ?? files.events,
    expiredToken: await mintExpired(parts, primary),
    errorCodePointer: '/code',
    ca,
    rateLimit: rateLimit && probeOf(rateLimit),
    fault: faultCommands
      ? { start: operations.command('outage-begin'), stop: operations.command('outage-end') }
      : undefined,
    ingest: operations.command('ingest'),
  };
}

/** Long enough ago for a leeway of five minutes and a clock that is ten minutes late. */
const EXPIRED_SECONDS = 1_000;

/** A token that expired a short time ago, so that a long leeway shows. */
function mintExpired(parts: ServiceParts, { clientId, tenantId }: TargetClient): Promise<string> {
  const exp = Math.floor(parts.now() / 1000) - EXPIRED_SECONDS;
  return parts.tokens.mint({
    iss: parts.issuer,
    aud: parts.audience,
    sub: clientId,
    iat: exp - 3_600,
    exp,
    scope: 'screenings.read',
    tenant_id: tenantId,
  });
}

/** Enough requests and time to exceed the limit once and be admitted again. */
function probeOf({ limit, windowMs, burst = 0 }: RateLimit): NonNullable<ReferenceTarget['rateLimit']> {
  return {
    probe: true,
    maxRequests: Math.max(2_000, 3 * (limit + burst)),
    maxSeconds: Math.max(60, Math.ceil((3 * windowMs) / 1_000)),
  };
}

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
  return { content, notSerializable, outage };
}

const NOT_SERIALIZABLE = Symbol('not serializable');

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
