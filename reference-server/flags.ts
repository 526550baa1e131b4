/** The command line of the reference server. */
import { createPrivateKey } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { command, flagsOf, matching, notEmpty, reading, whole } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { parseRate, RATE_ALGORITHMS, type RateAlgorithm, type RateLimit } from './http/rate-limit.ts';

export interface Flags {
  readonly port: number;
  readonly authPort?: number;
  readonly host: string;
  readonly pathPrefix: string;
  readonly publicUrl?: string;
  readonly publicAuthUrl?: string;
  readonly postgres?: 'embedded' | 'testcontainers';
  readonly keep?: string;
  readonly writeTarget?: string;
  readonly provisioning?: string;
  readonly dataset: readonly string[];
  readonly screenings?: number;
  readonly empty?: boolean;
  readonly rateLimit?: Pick<RateLimit, 'limit' | 'windowMs'>;
  readonly rateAlgorithm: RateAlgorithm;
  readonly rateBurst?: number;
  readonly events?: string;
  readonly eventsDir?: string;
  readonly webhook?: string;
  readonly accessLog?: string | true;
  readonly signingKey?: string;
  readonly tokenLifetime: number;
  readonly fault?: string;
  readonly listFaults?: true | string;
}

/** Ends the process where the flags are wrong (status 2) or help is asked for. */
/** Undefined where help was asked for and given. Throws a UsageError of one line. */
export function parseFlags(argv: readonly string[], env: NodeJS.ProcessEnv): Flags | undefined {
  const parser = command('reference-server', 'The Screenings Retrieval Service as it should be.')
    .option('--port <port>', 'of the REST API, and of the token endpoint; 0 for any', whole(0, 65_535), 8080)
    .option('--auth-port <port>', 'the token endpoint on a port of its own', whole(0, 65_535))
    .option('--host <address>', 'to listen on', notEmpty, '127.0.0.1')
    .option('--path-prefix <path>', 'stands before every path', prefix, '')
    .option(
      '--public-url <url>',
      'where clients find it, if not at host and port: for next, iss and aud',
      url,
    )
    .option('--public-auth-url <url>', 'where clients find the token endpoint, if not there', url)
    .addOption(
      new Option('--postgres <way>', 'where the database comes from (DATABASE_URL goes first)').choices([
        'embedded',
        'testcontainers',
      ]),
    )
    .option(
      '--keep <schema>',
      'keep the data in this schema of DATABASE_URL, and serve what is there',
      schema,
    )
    .option('--write-target <file>', 'write a target file here, and its datasets next to it', writable)
    .option('--provisioning <file>', 'tenants, clients and datasets', readable)
    .option(
      '--dataset <file...>',
      "primary's screenings, then the second tenant's",
      (path: string, before: readonly string[]) => [...before, readable(path)],
      [],
    )
    .option('--screenings <number>', 'number of screenings to generate for primary', whole(0, 100_000_000))
    .option('--empty', 'hold no screenings')
    .option('--rate-limit <rate>', 'per client, such as 100/10s', rate)
    .addOption(
      new Option('--rate-algorithm <kind>', 'of the limit').choices(RATE_ALGORITHMS).default('fixed-window'),
    )
    .option('--rate-burst <number>', 'what a full token-bucket holds', whole(1, 1_000_000))
    .option('--events <file>', "write primary's events here, one a line, those of the future too", writable)
    .option('--events-dir <directory>', "write every tenant's events here, to TENANT.ndjson", folder)
    .option('--webhook <url>', "post every tenant's events there", url)
    .option('--access-log [file]', 'a JSON object for each request; without a file to standard error', log)
    .option('--signing-key <file>', 'private key of the tokens, PEM', privateKey)
    .option('--token-lifetime <seconds>', 'of access tokens', whole(1, 86_400), 3_600)
    .option('--fault <name>', 'with this mistake put in, or this unusual but allowed behaviour')
    .option(
      '--list-faults [ID]',
      'print the names for --fault, or of those that break a requirement, and end',
    );
  const flags = flagsOf<Flags>(parser, argv);
  if (flags === undefined) return undefined;
  const vain = ofNoEffect(flags, (name) => parser.getOptionValueSource(name) === 'cli', env);
  if (vain !== undefined) throw new UsageError(vain);
  return flags;
}

/** Flags that would change nothing are a mistake: the first of them, and what it goes with. */
function ofNoEffect(
  { rateLimit, rateAlgorithm, dataset }: Flags,
  isGiven: (name: keyof Flags) => boolean,
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (!rateLimit && isGiven('rateAlgorithm')) return '--rate-algorithm goes with --rate-limit';
  if (isGiven('rateBurst') && (!rateLimit || rateAlgorithm !== 'token-bucket'))
    return '--rate-burst goes with --rate-limit and --rate-algorithm token-bucket';
  const data = (['provisioning', 'empty', 'dataset', 'screenings'] as const).filter(isGiven);
  if (data.length > 1) return `--${data[0]} and --${data[1]} exclude each other`;
  if (dataset.length > 2) return '--dataset takes two files at most';
  if (isGiven('keep') && !env['DATABASE_URL']) return '--keep goes with DATABASE_URL';
  return undefined;
}

function readable(path: string): string {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw new InvalidArgumentError(`it can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  return path;
}

/** As far as can be told beforehand. */
function writable(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new InvalidArgumentError('it is a folder; name a file.');
  if (!existsSync(dirname(path))) throw new InvalidArgumentError('its folder is not there.');
  return path;
}

function folder(path: string): string {
  try {
    makeFolder(path);
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new InvalidArgumentError(`it can't be written to (${(error as NodeJS.ErrnoException).code}).`);
  }
  return path;
}

/** One level after the other: Node does not end where it is asked for a tree below /proc. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  mkdirSync(path);
}

function log(path: string): string {
  folder(dirname(path));
  try {
    closeSync(openSync(path, 'a'));
  } catch (error) {
    throw new InvalidArgumentError(`it can't be written (${(error as NodeJS.ErrnoException).code}).`);
  }
  return path;
}

function privateKey(path: string): string {
  const pem = readFileSync(readable(path));
  try {
    createPrivateKey(pem);
  } catch {
    throw new InvalidArgumentError('it holds no private key in PEM.');
  }
  return path;
}

const rate = (text: string): Pick<RateLimit, 'limit' | 'windowMs'> => {
  try {
    return parseRate(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};

const path = matching(/^(\/[\w.~-]+)*\/?$/, 'a path such as /api is expected.');
const prefix = (text: string): string => path(text).replace(/\/$/, '');

const schema = matching(/^[a-z_][a-z0-9_]{0,62}$/, 'a name such as screenings is expected.');

/** Without a trailing slash. */
const url = reading('a URL such as https://api.example.com/screenings is expected.', (text) =>
  /^https?:\/\/[^?#@\s]+$/i.test(text) && URL.canParse(text)
    ? new URL(text).href.replace(/\/+$/, '')
    : undefined,
);
