/** A client under test: given its values, it ends with an exit status and output. */
import { integerOf, isObject, member, parseJson, type Json } from '../../engine/client/json.ts';
import type { Given, World } from './stage.ts';
import { UsageError } from '../../engine/errors.ts';
import { makeFolder } from '../../engine/files.ts';
import { quote } from '../../engine/run/evidence/evidence.ts';
import { spawnGuarded } from '../../engine/process.ts';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Ended {
  /** Undefined if it was stopped or the status is unknown. */
  readonly status: number | undefined;
  /** Undefined if its output is unknown. */
  readonly stdout: string | undefined;
  readonly stderr: string;
}

/** Runs the client once; `signal` stops it. Rejects with a UsageError if it cannot be started. */
export type Client = (given: Given, signal: AbortSignal, situation: string, world: World) => Promise<Ended>;

const CREDENTIALS = ['clientId', 'clientSecret', 'tenantId'] as const;
const NAMES = ['baseUrl', 'authUrl', ...CREDENTIALS, 'from', 'to', 'pageSize', 'events'] as const;

/** The values for a client by name: baseUrl is `{base_url}`, and SCREENINGS_BASE_URL in its environment. */
const valuesOf = (given: Given): Readonly<Record<string, string | number | undefined>> =>
  Object.fromEntries(NAMES.map((name) => [name.replace(/[A-Z]/, '_$&').toLowerCase(), given[name]]));

/** Variables from which Node, OpenSSL (Python, Ruby, PHP, Go …), curl and requests read the certificates to trust. */
export const TRUST_VARIABLES = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
];

function environmentOf(given: Given): Record<string, string> {
  const values = Object.entries(valuesOf(given));
  const named = values.map(([name, value]) => [`SCREENINGS_${name.toUpperCase()}`, value] as const);
  const trusted = TRUST_VARIABLES.map((name) => [name, given.trusted] as const);
  const present = [...named, ...trusted].filter(([, value]) => value !== undefined);
  return Object.fromEntries(present.map(([name, value]) => [name, String(value)]));
}

// -- a shell command, started once per situation ---------------------------------------------------

const MOST_OUTPUT = 64 * 1024 * 1024;
const GRACE_MS = 1_500;

/** Throws a UsageError if the shell cannot start the command; no exit status if it was stopped. */
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
    // Kills processes that the client left running, because they keep its output open.
    child.once('exit', () => setTimeout(() => kill('SIGKILL'), GRACE_MS).unref());
    const [code] = (await once(child, 'close')) as [number | null];
    signal.removeEventListener('abort', stop);
    kill('SIGKILL');
    if (signal.aborted) return { ...texts, status: undefined };
    if (code === 126 || code === 127)
      throw new UsageError(`--command: ${texts.stderr.trim().split('\n').at(-1) ?? 'it can’t be started'}`);
    return { ...texts, status: code ?? 128 };
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

// -- a client that the user starts by hand ---------------------------------------------------------

const LOOK_EVERY_MS = 200;

/** Reads output and exit status from the files that it prints; a line on standard input (the status) also ends it. */
export function clientByHand(directory: string, tell: (text: string) => void): Client {
  const typed: string[] = [];
  let told: string[] = [];
  createInterface({ input: process.stdin }).on('line', (line) => typed.push(line));

  return async (given, signal, situation) => {
    makeFolder(directory);
    const output = join(directory, `${situation}.ndjson`);
    const status = join(directory, `${situation}.status`);
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

// -- the output of a client, parsed into the screenings that it collected --------------------------

export interface Printed {
  readonly screenings: readonly { readonly id: bigint; readonly json: Json }[];
  /** Lines that start like a JSON object but are not one. */
  readonly malformed: readonly string[];
}

/** Ignores lines that are not JSON objects, or that have no id, as messages of the client. */
export function readPrinted(stdout: string): Printed {
  const lines = stdout.replace(/^\uFEFF/, '').split('\n');
  const texts = lines.map((line) => line.trim()).filter((text) => text.startsWith('{'));
  const parsed = texts.map((text) => ({ text, json: parseJson(text) }));
  return {
    screenings: parsed.flatMap(({ json }) => {
      const id = idOf(member(json, 'id'));
      return json !== undefined && id !== undefined ? [{ id, json }] : [];
    }),
    malformed: parsed.flatMap(({ text, json }) => (isObject(json) ? [] : text)),
  };
}

/** Accepts ids as text, for languages without 64-bit integers. */
const idOf = (value: Json | undefined): bigint | undefined =>
  typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value) : integerOf(value);
