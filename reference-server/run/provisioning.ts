/** Tenants, clients and screenings of a server, from files or by default. */
import { randomBytes } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { UUID, streamDataset, writeDataset, type Screening } from '../../engine/data/dataset.ts';
import { GENERATED_WINDOW, generateScreenings } from '../../fixtures/dataset/generator.ts';
import type { GeneratorOptions } from '../../fixtures/dataset/generator.ts';
import { formatInstant, instant, shift } from '../../engine/data/instant.ts';
import { readJson, temporaryFolder } from '../../engine/files.ts';
import { targetFileSchema, type ClientName } from '../../engine/target/target.ts';
import { createClientRegistry, hashSecret } from '../auth.ts';
import type { Connections } from '../store/connections.ts';
import type { Database } from '../store/database.ts';
import { readEvents, writeEvents } from '../events.ts';
import { GRANTED, type Client, type ClientRegistry } from '../parts.ts';
import { forgetTenant, storeScreenings } from '../store/store.ts';

/** Tenant ids of the default provisioning, by role of their client. */
export const TENANTS = {
  primary: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01',
  secondTenant: '1b9e2c40-8a7d-4f13-b2c6-5e4d3c2b1a02',
  notOnboarded: '42f6d0aa-6c1b-4e8f-8d3e-9a7b5c3d1f03',
  scratch: 'c3a8e6f4-2d5b-47c9-a1e0-7f6d5b4c3a04',
} as const;

type Source = { readonly file: string } | { readonly generate: Omit<GeneratorOptions, 'tenantId'> };

interface ProvisionedTenant {
  readonly tenantId: string;
  readonly onboarded: boolean;
  /** Absent: it has none. */
  readonly screenings?: Source;
}

interface ProvisionedClient extends Client {
  /** Its name in a target file; scratch: the client of an onboarded tenant without screenings. */
  readonly role?: ClientName;
  readonly clientSecret: string;
}

export interface ProvisioningSet {
  readonly tenants: readonly ProvisionedTenant[];
  readonly clients: readonly ProvisionedClient[];
}

/** Two tenants that interleave in time, with `count` and `secondCount` screenings, and a client for every error. */
export function defaultProvisioning({ count = 3_500, secondCount = 300 } = {}): ProvisioningSet {
  const generated = (generate: Pick<GeneratorOptions, 'count' | 'seed' | 'idOffset'>) =>
    generate.count > 0 ? { screenings: { generate: { ...generate, bigIds: true } } } : {};
  const onboarded = true;
  return {
    tenants: [
      { tenantId: TENANTS.primary, onboarded, ...generated({ count, seed: 1 }) },
      {
        ...{ tenantId: TENANTS.secondTenant, onboarded },
        ...generated({ count: secondCount, seed: 2, idOffset: 5_000_000n }),
      },
      { tenantId: TENANTS.scratch, onboarded },
      { tenantId: TENANTS.notOnboarded, onboarded: false },
    ],
    clients: [
      client('primary', TENANTS.primary),
      client('secondTenant', TENANTS.secondTenant),
      client('notOnboarded', TENANTS.notOnboarded),
      { ...client('unauthorized', TENANTS.primary), grantTypes: ['authorization_code'] },
      { ...client('invalidGrant', TENANTS.primary), suspended: true },
      client('scratch', TENANTS.scratch),
    ],
  };
}

function client(role: ClientName, tenantId: string): ProvisionedClient {
  // Two dashes are a comment in SQL for some firewalls, which would never let this client in.
  const clientSecret = randomBytes(24).toString('base64url').replaceAll('-', '_');
  return { role, clientId: `${role}-client`, clientSecret, tenantId, ...GRANTED };
}

/** The default set with the dataset files of primary and the second tenant, whose ids are in them. Throws DatasetError. */
export async function provisioningOfDatasets(files: readonly string[]): Promise<ProvisioningSet> {
  const set = defaultProvisioning({ count: 0, secondCount: 0 });
  const renamed = new Map<string, ProvisionedTenant>();
  for (const [place, file] of files.entries()) {
    const replaced = [TENANTS.primary, TENANTS.secondTenant][place];
    if (!replaced) throw new Error('at most two datasets: the one of primary and the one of secondTenant');
    for await (const { tenantId } of streamDataset(file)) {
      renamed.set(replaced, { tenantId: tenantId.toLowerCase(), onboarded: true, screenings: { file } });
      break;
    }
  }
  return {
    tenants: set.tenants.map((tenant) => renamed.get(tenant.tenantId) ?? tenant),
    clients: set.clients.map((known) => ({
      ...known,
      tenantId: renamed.get(known.tenantId)?.tenantId ?? known.tenantId,
    })),
  };
}

const uuid = z.string().regex(UUID, 'must be a UUID').toLowerCase();
const provisioningFile = z.strictObject({
  tenants: z.array(
    z.strictObject({ tenantId: uuid, onboarded: z.boolean().default(true), dataset: z.string().optional() }),
  ),
  clients: z.array(
    z.strictObject({
      role: targetFileSchema.shape.clients.keyof().optional(),
      clientId: z.string().min(1),
      clientSecret: z.string().min(1),
      tenantId: uuid,
      scopes: z.array(z.string()).default(GRANTED.scopes),
      grantTypes: z.array(z.string()).default(GRANTED.grantTypes),
      suspended: z.boolean().default(GRANTED.suspended),
    }),
  ),
});

/** Reads a provisioning file; dataset paths are relative to it. Throws a UsageError with the file and the member. */
export async function readProvisioning(path: string): Promise<ProvisioningSet> {
  const file = await readJson(path, '--provisioning', 'provisioning file', provisioningFile);
  return {
    tenants: file.tenants.map(({ dataset, ...tenant }) => ({
      ...tenant,
      screenings: dataset === undefined ? undefined : { file: resolve(dirname(path), dataset) },
    })),
    clients: file.clients,
  };
}

/** A set that is stored in the database, with the values for a server and a target file. */
export interface Provisioned extends AsyncDisposable {
  readonly set: ProvisioningSet;
  readonly clients: ClientRegistry;
  /** In lower case. */
  readonly onboarded: ReadonlySet<string>;
  /** The extent of primary's screenings in time; absent if it has none. */
  readonly window?: { readonly from: string; readonly to: string };
  /** Absolute paths; absent if the tenant has no screenings. */
  readonly files: { readonly dataset?: string; readonly secondDataset?: string; readonly events?: string };
}

interface LoadOptions {
  /** How the paths of dataset and event files of generated screenings begin. Default: in a temporary directory. */
  readonly stem?: string;
  /** Keeps a tenant's stored screenings; no dataset is written then, as they may have changed. */
  readonly keep?: boolean;
  /** The scrypt parameter N, the cost of a guess. Default 16,384. */
  readonly hashCost?: number;
  /** Called with a tenant's number of stored screenings, every 100,000. */
  readonly onProgress?: (tenantId: string, stored: number) => void;
}

const PROGRESS_EVERY = 100_000;
/** Larger sets get an event file only if a flag asks for it. */
const MAX_EVENTS_UNASKED = 20_000;

/** Replaces the screenings of a set's tenants. Throws an Error for one of another tenant, and DatasetError. */
export async function loadProvisioning(
  database: Database,
  set: ProvisioningSet,
  options: LoadOptions = {},
): Promise<Provisioned> {
  const temporary = options.stem === undefined ? await temporaryFolder('screenings-data') : undefined;
  const stem = options.stem ?? `${temporary!.path}/`;
  const fileOf = (name: string): string => `${stem}${name}.ndjson`;
  await using connections = database.connect();
  const isOf = (role: ClientName, tenantId: string): boolean =>
    set.clients.find((known) => known.role === role)?.tenantId === tenantId;

  const files: { dataset?: string; secondDataset?: string; events?: string } = {};
  let window: Provisioned['window'];
  for (const { tenantId, screenings: source } of set.tenants) {
    if (options.keep && (await readEvents(connections, tenantId, 0n, 1)).length > 0) continue;
    await forgetTenant(connections, tenantId);
    if (!source) continue;
    await storeScreenings(connections, screeningsOf(tenantId, source, options.onProgress));
    if (isOf('primary', tenantId)) {
      files.dataset = await datasetFile(tenantId, source, fileOf('dataset'));
      const stored = await extentOf(connections, tenantId);
      window = 'generate' in source ? GENERATED_WINDOW : stored.window;
      if (stored.count > MAX_EVENTS_UNASKED) continue;
      files.events = fileOf('events');
      await writeEvents(files.events, connections, tenantId);
    } else if (isOf('secondTenant', tenantId))
      files.secondDataset = await datasetFile(tenantId, source, fileOf('secondDataset'));
  }
  await connections.transaction(async (client) => void (await client.query('ANALYZE screening, event')));

  const registered = set.clients.map(async ({ clientSecret, ...known }) => ({
    ...known,
    secret: await hashSecret(clientSecret, options.hashCost),
  }));
  return {
    set,
    clients: await createClientRegistry(await Promise.all(registered)),
    onboarded: new Set(set.tenants.filter((t) => t.onboarded).map((t) => t.tenantId.toLowerCase())),
    window,
    files,
    [Symbol.asyncDispose]: async () => temporary?.[Symbol.asyncDispose](),
  };
}

async function datasetFile(tenantId: string, source: Source, path: string): Promise<string> {
  if ('file' in source) return resolve(source.file);
  await writeDataset(path, generateScreenings({ tenantId, ...source.generate }), 0o600);
  return path;
}

async function* screeningsOf(
  tenantId: string,
  source: Source,
  onProgress: LoadOptions['onProgress'],
): AsyncGenerator<Screening> {
  let count = 0;
  const all =
    'file' in source ? streamDataset(source.file) : generateScreenings({ tenantId, ...source.generate });
  for await (const screening of all) {
    if (screening.tenantId.toLowerCase() !== tenantId)
      throw new Error(`screening ${screening.id} belongs to ${screening.tenantId} and not to ${tenantId}`);
    yield screening;
    if (++count % PROGRESS_EVERY === 0) onProgress?.(tenantId, count);
  }
}

async function extentOf(connections: Connections, tenantId: string) {
  const ofTenant = 'FROM screening WHERE tenant = $1';
  const [extent] = await connections.query<{ count: number; first: string | null; last: string | null }>({
    text: `SELECT (SELECT count(*)::int ${ofTenant}) AS count,
             (SELECT test_time ${ofTenant} ORDER BY at, id LIMIT 1) AS first,
             (SELECT test_time ${ofTenant} ORDER BY at DESC, id DESC LIMIT 1) AS last`,
    values: [tenantId],
  });
  const { count = 0, first, last } = extent ?? {};
  if (!first || !last) return { count, window: undefined };
  const to = formatInstant(shift(instant(last), 1n, 6));
  return { count, window: { from: formatInstant(instant(first)), to } };
}
