/** A reference server's target file: its content, with the changes that a fault makes to it. */
import { chmod, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import type { Screening } from '../../engine/data/dataset.ts';
import { formatInstant } from '../../engine/data/instant.ts';
import { resolveTarget, type ClientName, type Target, type TargetFile } from '../../engine/target/target.ts';
import type { Operations } from './operations.ts';
import type { Outage, ServiceParts } from '../parts.ts';
import type { Provisioned } from './provisioning.ts';
import type { RateLimit } from '../http/rate-limit.ts';

export interface TargetClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tenantId: string;
}

/** A target file, with what a reference server always has. Paths are absolute. */
export interface ReferenceTarget extends TargetFile {
  readonly name: string;
  readonly clients: { readonly primary: TargetClient } & Partial<Record<ClientName, TargetClient>>;
  readonly expiredToken: string;
  /** Shell command that stores the dataset lines on its standard input. */
  readonly ingest: string;
}

/** The options of a server that its target file tells. */
interface ToldOptions {
  readonly rateLimit?: RateLimit;
  readonly events?: string;
  readonly faultCommands?: boolean;
}

/** `ca`: the file of the certificate, if it is self-signed. */
export async function describeTarget(
  parts: ServiceParts,
  { set, window, files }: Provisioned,
  operations: Operations,
  { rateLimit, events = files.events, faultCommands }: ToldOptions,
  ca: string | undefined,
): Promise<ReferenceTarget> {
  const clients: Partial<Record<ClientName, TargetClient>> = {};
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
    events,
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
function probeOf({ limit, windowMs, burst = 0 }: RateLimit): TargetFile['rateLimit'] {
  return {
    probe: true,
    maxRequests: Math.max(2_000, 3 * (limit + burst)),
    maxSeconds: Math.max(60, Math.ceil((3 * windowMs) / 1_000)),
  };
}

type Content = Record<string, unknown>;

/** Members that name a file of lines. */
const LINE_FILES = ['dataset', 'secondDataset', 'unfinished', 'events'] as const;

/** Paths in the file are relative to it. It contains secrets, so only its owner may read it. */
export async function writeTargetFile(path: string, content: Content): Promise<void> {
  const directory = dirname(resolve(path));
  const written: Content = { ...content };
  for (const name of [...LINE_FILES, 'ca']) {
    if (typeof written[name] === 'string') written[name] = relative(directory, written[name]);
  }
  await writePrivate(path, `${JSON.stringify(written, null, 2)}\n`);
}

/** The content as a fault changes it, and the effect of its commands; changed events and datasets go to files of `stem`. */
export async function changedTarget(
  reference: ReferenceTarget,
  change: (target: Target) => Target,
  stem: string,
): Promise<{ readonly content: Content; readonly outage?: Outage }> {
  const before = await resolveTarget(reference);
  const target = change(before);
  const content: Content = { ...reference };
  for (const name of new Set([...Object.keys(before), ...Object.keys(target)]) as Set<keyof Target>) {
    // The commands stay the same; their effect changes (`outage`).
    if (target[name] !== before[name] && name !== 'fault') content[name] = await memberOf(target, name, stem);
  }
  const { fault } = target;
  const outage = fault && fault !== before.fault ? { begin: fault.start, end: fault.stop } : undefined;
  return { content, outage };
}

/** The member as a target file has it. */
async function memberOf(target: Target, name: keyof Target, stem: string): Promise<unknown> {
  const { window, rateLimit } = target;
  if (name === 'window') return window && { from: formatInstant(window.from), to: formatInstant(window.to) };
  if (name === 'rateLimit') return rateLimit && { probe: true, ...rateLimit };
  const lines = (LINE_FILES as readonly string[]).includes(name)
    ? (target[name as (typeof LINE_FILES)[number]] as readonly (string | Screening)[] | undefined)
    : undefined;
  if (!lines) return target[name];
  const path = `${stem}${name}-of-fault.ndjson`;
  await writePrivate(path, lines.map((one) => `${typeof one === 'string' ? one : one.json}\n`).join(''));
  return path;
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  // The mode above applies to new files only.
  await chmod(path, 0o600);
}
