/** `npm run reference-server`: the reference server by itself. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Database, openDatabase } from './database.ts';
import {
  defaultProvisioning,
  loadProvisioning,
  type Provisioned,
  provisioningOfDatasets,
  type ProvisioningSet,
  readProvisioning,
} from './provisioning.ts';
import { parseRate, RATE_ALGORITHMS, type RateAlgorithm, type RateLimit } from './rate-limit.ts';
import { type ReferenceServer, type ReferenceTarget, startServer } from './start.ts';

interface Flags {
  readonly port: number;
  readonly authPort?: number;
  readonly host: string;
  readonly pathPrefix: string;
  readonly postgres?: 'embedded' | 'testcontainers';
  readonly writeTarget?: string;
  readonly provisioning?: string;
  readonly dataset: readonly string[];
  readonly screenings?: number;
  readonly empty?: boolean;
  readonly rateLimit?: Pick<RateLimit, 'limit' | 'windowMs'>;
  readonly rateAlgorithm: RateAlgorithm;
  readonly rateBurst?: number;
  readonly events?: string;
  readonly signingKey?: string;
  readonly tokenLifetime: number;
}

const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most))
      throw new InvalidArgumentError(`${least} to ${most} is expected.`);
    return value;
  };

const rate = (text: string): Pick<RateLimit, 'limit' | 'windowMs'> => {
  try {
    return parseRate(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};

const prefix = (text: string): string => {
  if (!/^(\/[\w.~-]+)*\/?$/.test(text)) throw new InvalidArgumentError('a path such as /api is expected.');
  return text.replace(/\/$/, '');
};

const flags = new Command('reference-server')
  .description('The Screenings Retrieval Service as it should be.')
  .option('--port <port>', 'of the REST API, and of the token endpoint; 0 for any', whole(0, 65_535), 8080)
  .option('--auth-port <port>', 'the token endpoint on a port of its own', whole(0, 65_535))
  .option('--host <address>', 'to listen on', '127.0.0.1')
  .option('--path-prefix <path>', 'stands before every path', prefix, '')
  .addOption(
    new Option('--postgres <way>', 'where the database comes from (DATABASE_URL goes first)').choices([
      'embedded',
      'testcontainers',
    ]),
  )
  .option('--write-target <file>', 'write a target file here, its datasets beside it')
  .option('--provisioning <file>', 'tenants, clients and datasets')
  .option('--dataset <file...>', "primary's screenings, then the second tenant's", [])
  .option('--screenings <number>', 'generate so many for primary', whole(0, 100_000_000))
  .option('--empty', 'hold no screenings')
  .option('--rate-limit <rate>', 'per client, such as 100/10s', rate)
  .addOption(
    new Option('--rate-algorithm <kind>', 'of the limit').choices(RATE_ALGORITHMS).default('fixed-window'),
  )
  .option('--rate-burst <number>', 'what a full token bucket holds', whole(1, 1_000_000))
  .option('--events <file>', "write primary's events here, one a line, those of the future too")
  .option('--signing-key <file>', 'private key of the tokens, PEM')
  .option('--token-lifetime <seconds>', 'of access tokens', whole(1, 86_400), 3_600)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Flags>();

const say = (line: string): void => console.error(`reference server: ${line}`);

await main().catch((error: Error) => {
  say(error.message);
  process.exitCode = 2;
});
// All is stopped; only a container engine that never answered may still be waited for.
process.exit();

async function main(): Promise<void> {
  // From the first moment on, so that a database on its way up is stopped too; and for good, because a signal to
  // the whole process group arrives a second time by way of the parent.
  const asked = new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => done());
  });
  await using database = await openDatabaseAsAsked();
  say(`database: ${database.description}`);
  await using provisioned = await load(database);
  await using server = await start(database, provisioned);
  if (flags.writeTarget) {
    await writeTarget(flags.writeTarget, server.target());
    say(`target file: ${flags.writeTarget}`);
  }
  console.log(`ready\nbaseUrl ${server.baseUrl}\nauthUrl ${server.authUrl}\npid ${process.pid}`);
  await asked;
  say('stopping');
}

/** DATABASE_URL goes first, whatever `--postgres` says. */
function openDatabaseAsAsked(): Promise<Database> {
  return openDatabase(process.env['DATABASE_URL'] ? 'auto' : (flags.postgres ?? 'auto'));
}

function provisioningSet(): Promise<ProvisioningSet> | ProvisioningSet {
  if (flags.provisioning) return readProvisioning(flags.provisioning);
  if (flags.empty) return defaultProvisioning({ count: 0, secondCount: 0 });
  if (flags.dataset.length > 0) return provisioningOfDatasets(flags.dataset);
  return defaultProvisioning(flags.screenings === undefined ? {} : { count: flags.screenings });
}

async function load(database: Database): Promise<Provisioned> {
  const since = Date.now();
  const provisioned = await loadProvisioning(database, await provisioningSet(), {
    ...(flags.writeTarget ? { directory: dirname(resolve(flags.writeTarget)) } : {}),
    onProgress: (tenantId, stored) => say(`${stored} screenings of ${tenantId} stored`),
  });
  say(`data loaded in ${((Date.now() - since) / 1000).toFixed(1)} s`);
  return provisioned;
}

async function start(database: Database, provisioned: Provisioned): Promise<ReferenceServer> {
  const { rateLimit, rateAlgorithm, rateBurst, signingKey, events } = flags;
  return startServer(database, provisioned, {
    host: flags.host,
    ports: { api: flags.port, ...(flags.authPort === undefined ? {} : { auth: flags.authPort }) },
    pathPrefix: flags.pathPrefix,
    tokenLifetimeSeconds: flags.tokenLifetime,
    faultSignals: true,
    ...(rateLimit
      ? { rateLimit: { ...rateLimit, algorithm: rateAlgorithm, ...(rateBurst ? { burst: rateBurst } : {}) } }
      : {}),
    ...(signingKey ? { signingKeyPem: await readFile(signingKey, 'utf8') } : {}),
    ...(events ? { eventsFile: resolve(events) } : {}),
  });
}

/** Holds secrets: for the owner's eyes. Its paths are relative to itself. */
async function writeTarget(path: string, target: ReferenceTarget): Promise<void> {
  const beside = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : relative(dirname(resolve(path)), file);
  const { dataset, secondDataset, events } = target;
  const written = {
    ...target,
    dataset: beside(dataset),
    secondDataset: beside(secondDataset),
    events: beside(events),
  };
  await writeFile(path, `${JSON.stringify(written, null, 2)}\n`, { mode: 0o600 });
  // The mode above is that of a new file only.
  await chmod(path, 0o600);
}
