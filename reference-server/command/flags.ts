/** The command line of the reference server. */
import { createPrivateKey } from 'node:crypto';
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import {
  command,
  parseCommand,
  matching,
  notEmpty,
  valueParser,
  wholeNumber,
} from '../../engine/command-line.ts';
import { UsageError } from '../../engine/errors.ts';
import { makeFolder } from '../../engine/files.ts';
import type { ServerOptions } from '../run/start.ts';
import { parseRate, RATE_ALGORITHMS, type RateAlgorithm, type RateLimit } from '../http/rate-limit.ts';

type ServerFlag = 'port' | 'authPort' | 'host' | 'pathPrefix' | 'publicUrl' | 'publicAuthUrl' | 'webhook';

export interface Flags extends Pick<ServerOptions, ServerFlag | 'events' | 'eventsDir'> {
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
  readonly accessLog?: string | true;
  /** In PEM. */
  readonly signingKey?: string;
  readonly tokenLifetime: number;
  readonly fault?: string;
  readonly listFaults?: true | string;
}

/** Returns undefined after printing the help. Throws a UsageError with one line. */
export function parseFlags(argv: readonly string[], env: NodeJS.ProcessEnv): Flags | undefined {
  const parser = command('reference-server', 'A correct Screenings Retrieval Service.')
    .option('--port <port>', 'port of the REST API and the token endpoint; 0 for any', port, 8080)
    .option('--auth-port <port>', 'a separate port for the token endpoint', port)
    .option('--host <address>', 'address to listen on', notEmpty, '127.0.0.1')
    .option('--path-prefix <path>', 'prefix of every path, such as /api', prefix, '')
    .option('--public-url <url>', 'public URL behind a proxy, for next, iss and aud', url)
    .option('--public-auth-url <url>', 'public URL of the token endpoint, if another', url)
    .addOption(
      new Option('--postgres <way>', 'kind of database (DATABASE_URL takes precedence)').choices([
        'embedded',
        'testcontainers',
      ]),
    )
    .option(
      '--keep <schema>',
      'keep the data in this schema of DATABASE_URL, and serve what it already contains',
      schema,
    )
    .option('--write-target <file>', 'write a target file, and its datasets next to it', writable)
    .option('--provisioning <file>', 'file with tenants, clients and datasets', readable)
    .option(
      '--dataset <file...>',
      "primary's screenings, then the second tenant's",
      (path: string, before: readonly string[]) => [...before, readable(path)],
      [],
    )
    .option(
      '--screenings <number>',
      'number of screenings to generate for primary',
      wholeNumber(0, 100_000_000),
    )
    .option('--empty', 'store no screenings')
    .option('--rate-limit <rate>', 'rate limit per client, such as 100/10s', rate)
    .addOption(
      new Option('--rate-algorithm <kind>', 'algorithm of the rate limit')
        .choices(RATE_ALGORITHMS)
        .default('fixed-window'),
    )
    .option('--rate-burst <number>', 'capacity of the token bucket', wholeNumber(1, 1_000_000))
    .option('--events <file>', "append primary's events to this file, one per line", writable)
    .option(
      '--events-dir <directory>',
      "append each tenant's events to TENANT.ndjson in this directory",
      folder,
    )
    .option('--webhook <url>', "POST every tenant's events to this URL", url)
    .option(
      '--access-log [file]',
      'log a JSON object per request to a file, by default to standard error',
      log,
    )
    .option('--signing-key <file>', 'PEM file with the private key for tokens', privateKey)
    .option('--token-lifetime <seconds>', 'lifetime of access tokens', wholeNumber(1, 86_400), 3_600)
    .option('--fault <name>', 'add this fault, or this unusual but allowed behaviour')
    .option('--list-faults [ID]', 'print the names for --fault, or those of faults that break a requirement');
  const flags = parseCommand<Flags>(parser, argv);
  if (flags === undefined) return undefined;
  const problem = flagWithoutEffect(flags, (name) => parser.getOptionValueSource(name) === 'cli', env);
  if (problem !== undefined) throw new UsageError(problem);
  return flags;
}

/** Returns a message about the first flag without effect, if any. */
function flagWithoutEffect(
  { rateLimit, rateAlgorithm, dataset }: Flags,
  isGiven: (name: keyof Flags) => boolean,
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (!rateLimit && isGiven('rateAlgorithm')) return '--rate-algorithm requires --rate-limit';
  if (isGiven('rateBurst') && (!rateLimit || rateAlgorithm !== 'token-bucket'))
    return '--rate-burst requires --rate-limit and --rate-algorithm token-bucket';
  const data = (['provisioning', 'empty', 'dataset', 'screenings'] as const).filter(isGiven);
  if (data.length > 1) return `--${data[0]} and --${data[1]} exclude each other`;
  if (dataset.length > 2) return '--dataset takes at most two files';
  if (isGiven('keep') && !env['DATABASE_URL']) return '--keep requires DATABASE_URL';
  return undefined;
}

/** Accepts a path if `check` does not throw. */
const path =
  (problem: string, check: (path: string) => void) =>
  (text: string): string => {
    try {
      check(text);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new InvalidArgumentError(`${problem}${/^E/.test(code ?? '') ? ` (${code})` : ''}.`);
    }
    return text;
  };

const readable = path("it can't be read", (file) => accessSync(file, constants.R_OK));

/** Only some failures can be detected before writing. */
function writable(file: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw new InvalidArgumentError('it is a directory; name a file.');
  if (!existsSync(dirname(file))) throw new InvalidArgumentError('its directory does not exist.');
  return file;
}

const folder = path("it can't be written to", (directory) => {
  makeFolder(directory);
  accessSync(directory, constants.W_OK);
});

const log = path("it can't be written to", (file) => {
  makeFolder(dirname(file));
  closeSync(openSync(file, 'a'));
});

const privateKey = (file: string): string => {
  path('it contains no private key in PEM', () => createPrivateKey(readFileSync(file)))(readable(file));
  return readFileSync(file, 'utf8');
};

const rate = valueParser('expected requests/duration such as 100/10s.', parseRate);

const prefix = valueParser('expected a path such as /api.', (text) =>
  /^(\/[\w.~-]+)*\/?$/.test(text) ? text.replace(/\/$/, '') : undefined,
);

const port = wholeNumber(0, 65_535);

const schema = matching(/^[a-z_][a-z0-9_]{0,62}$/, 'expected a name such as screenings.');

/** Returns the URL without a trailing slash. */
const url = valueParser('expected a URL such as https://api.example.com/screenings.', (text) =>
  /^https?:\/\/[^?#@\s]+$/i.test(text) && URL.canParse(text)
    ? new URL(text).href.replace(/\/+$/, '')
    : undefined,
);
