/** The reference server as a command: opens a database, loads its data, and serves until a signal. */
import { dirname, join, parse, resolve } from 'node:path';
import { onShutdown } from '../../engine/process.ts';
import { type Database, openDatabase } from '../store/database.ts';
import type { Behaviour } from '../faults/fault.ts';
import type { Flags } from './flags.ts';
import { listen, type Observer } from '../http/http.ts';
import {
  defaultProvisioning,
  loadProvisioning,
  provisioningOfDatasets,
  readProvisioning,
} from '../run/provisioning.ts';
import type { Provisioned, ProvisioningSet } from '../run/provisioning.ts';
import type { Outage } from '../parts.ts';
import { type ServerOptions, startServer } from '../run/start.ts';
import { changedTarget, type ReferenceTarget, writeTargetFile } from '../run/target.ts';

/** How long to wait for requests in flight at the end. */
const DRAIN_MS = 10_000;

const say = (line: string): void => console.error(`reference server: ${line}`);

/** Resolves when the server has stopped. Rejects if it cannot be started. */
export async function serve(flags: Flags): Promise<void> {
  // Handles signals from the start, so that a starting database is stopped too.
  const signalled = new Promise<void>((done) => onShutdown(() => done()));
  const name = flags.fault;
  const fault = name === undefined ? undefined : (await import('./fault-by-name.ts')).faultByName(name);
  if (fault) say(`with a fault: ${fault.name}`);
  const options = await serverOptions(flags);
  await checkAddresses(flags);
  // DATABASE_URL takes precedence over `--postgres`.
  const choice = process.env['DATABASE_URL'] ? 'auto' : (flags.postgres ?? 'auto');
  await using database = await openDatabase(choice, flags.keep);
  say(`database: ${database.description}`);
  await using provisioned = await load(database, flags);
  let outageOfFault: Outage | undefined;
  await using server = await startServer(database, provisioned, {
    ...options,
    ...fault?.server,
    wrapOutage: (usual) => ({
      begin: () => (outageOfFault ?? usual).begin(),
      end: () => (outageOfFault ?? usual).end(),
    }),
  });
  say(`listening on ${server.listeningAt.join(' and ')}`);
  if (flags.writeTarget) outageOfFault = await writeTarget(flags.writeTarget, server.target(), fault);
  console.log(`ready\nbaseUrl ${server.baseUrl}\nauthUrl ${server.authUrl}\npid ${process.pid}`);
  await signalled;
  say('stopping');
  await server.stop(DRAIN_MS);
}

/** Reports an address that cannot be bound before anything is started. */
async function checkAddresses({ host, port, authPort }: Flags): Promise<void> {
  await using _api = await listen({ host, port });
  await using _auth = authPort === undefined ? undefined : await listen({ host, port: authPort });
}

/** How the paths of files that belong to a target file begin, so that one directory can hold several targets. */
const stemOf = (path: string): string => join(dirname(resolve(path)), `${parse(path).name}.`);

/** Returns the fault's own effect of the outage commands, if it has one. */
async function writeTarget(path: string, target: ReferenceTarget, fault: Behaviour | undefined) {
  // Reads the datasets, which may be large, only for a fault.
  const { content, outage } = fault?.target
    ? await changedTarget(target, fault.target, stemOf(path))
    : { content: { ...target } };
  await writeTargetFile(path, content);
  say(`target file: ${path}`);
  return outage;
}

function provisioningSet(flags: Flags): Promise<ProvisioningSet> | ProvisioningSet {
  if (flags.provisioning) return readProvisioning(flags.provisioning);
  if (flags.empty) return defaultProvisioning({ count: 0, secondCount: 0 });
  if (flags.dataset.length > 0) return provisioningOfDatasets(flags.dataset);
  return defaultProvisioning({ count: flags.screenings });
}

async function load(database: Database, flags: Flags): Promise<Provisioned> {
  const since = Date.now();
  const provisioned = await loadProvisioning(database, await provisioningSet(flags), {
    stem: flags.writeTarget && stemOf(flags.writeTarget),
    keep: flags.keep !== undefined,
    onProgress: (tenantId, stored) => say(`${stored} screenings of ${tenantId} stored`),
  });
  say(`data loaded in ${((Date.now() - since) / 1000).toFixed(1)} s`);
  return provisioned;
}

async function serverOptions(flags: Flags): Promise<ServerOptions> {
  const { rateLimit, rateAlgorithm, rateBurst, accessLog: log } = flags;
  const { accessLog, createMetrics } = await import('../run/observation.ts');
  const logged = log === undefined ? undefined : accessLog(log === true ? undefined : log);
  return {
    ...flags,
    tokenLifetimeSeconds: flags.tokenLifetime,
    faultCommands: true,
    rateLimit: rateLimit && { ...rateLimit, algorithm: rateAlgorithm, burst: rateBurst },
    signingKeyPem: flags.signingKey,
    observe(counts) {
      const { observer, metrics } = createMetrics(counts);
      const tellBoth: Observer = (outcome) => {
        observer(outcome);
        logged?.(outcome);
      };
      return { observer: tellBoth, metrics };
    },
  };
}
