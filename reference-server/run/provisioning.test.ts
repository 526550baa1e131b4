import { writeFile } from 'node:fs/promises';
import { expect } from '@playwright/test';
import { writeDataset } from '../../engine/data/dataset.ts';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { openDatabase } from '../store/database.ts';
import { loadProvisioning, provisioningOfDatasets, readProvisioning } from './provisioning.ts';
import { startServer } from './start.ts';
import { itemsOf, test } from '../testing.ts';

const fileOf = (name: string): string => test.info().outputPath(name);

const TENANT = 'aaaaaaaa-0000-4000-8000-00000000000a';
const OTHER = 'bbbbbbbb-0000-4000-8000-00000000000b';

test('serves dataset files, for their tenants, also when loaded again', async ({ database: { url } }) => {
  // A separate schema: this test replaces the screenings of tenants.
  await using ownDatabase = await openDatabase({ url });
  const [first, second] = [fileOf('first.ndjson'), fileOf('second.ndjson')];
  await writeDataset(second, generateScreenings({ tenantId: OTHER, count: 20 }));
  for (const count of [120, 100]) {
    await writeDataset(first, generateScreenings({ tenantId: TENANT.toUpperCase(), count }));
    const set = await provisioningOfDatasets([first, second]);
    await using provisioned = await loadProvisioning(ownDatabase, set);
    await using server = await startServer(ownDatabase, provisioned);
    const target = server.target();
    expect(target).toMatchObject({
      dataset: first,
      secondDataset: second,
      window: { from: '2024-02-01T00:00:00Z', to: '2025-02-01T00:00:00.000001Z' },
      clients: { primary: { tenantId: TENANT }, secondTenant: { tenantId: OTHER } },
    });
    const query = `from=${target.window?.from}&to=${target.window?.to}`;
    expect(await itemsOf(target, query)).toHaveLength(count);
    expect(await itemsOf(target, query, target.clients.secondTenant)).toHaveLength(20);
  }
});

test("rejects another tenant's screening in a dataset and names it", async ({ database: { url } }) => {
  // A separate schema: this test replaces the screenings of tenants.
  await using ownDatabase = await openDatabase({ url });
  const file = fileOf('mixed.ndjson');
  await writeDataset(file, [
    ...generateScreenings({ tenantId: TENANT, count: 3 }),
    ...generateScreenings({ tenantId: OTHER, count: 1, idOffset: 77n }),
  ]);
  const set = await provisioningOfDatasets([file]);
  await expect(loadProvisioning(ownDatabase, set)).rejects.toThrow(/^screening \d+ belongs to bbbb/);
});

test('reads a provisioning file with defaults and relative dataset paths', async () => {
  const path = fileOf('provisioning.json');
  const client = { role: 'primary', clientId: 'c', clientSecret: 's', tenantId: TENANT };
  await writeFile(
    path,
    JSON.stringify({ tenants: [{ tenantId: TENANT, dataset: 'some.ndjson' }], clients: [client] }),
  );
  expect(await readProvisioning(path)).toEqual({
    tenants: [{ tenantId: TENANT, onboarded: true, screenings: { file: fileOf('some.ndjson') } }],
    clients: [
      { ...client, scopes: ['screenings.read'], grantTypes: ['client_credentials'], suspended: false },
    ],
  });
});

const WRONG: [content: string, message: RegExp][] = [
  ['{', /^--provisioning: .*provisioning\.json is not JSON/],
  [
    '{"tenants":[{"tenantId":"me"}],"clients":[]}',
    /is not a provisioning file: tenants\.0\.tenantId: must be a UUID/,
  ],
  ['{"tenants":[],"clients":[],"tennants":[]}', /the whole: Unrecognized key: "tennants"/],
];
for (const [content, message] of WRONG)
  test(`rejects the provisioning file ${content}`, async () => {
    const path = fileOf('provisioning.json');
    await writeFile(path, content);
    await expect(readProvisioning(path)).rejects.toThrow(message);
  });
