/** A case declared not applicable in the target file stays untested, and its class counts as exercised. */
import { expect } from '@playwright/test';
import { startInProcess, test } from '../reference-server/faults/testing.ts';
import { resolveTarget } from '../engine/target/target.ts';
import { certify, selectIds } from './certify.ts';
import { targetFor } from './proof/faults.ts';

const CASES = selectIds(['7.1-unauthorized_client', '7.1-invalid_grant', '7.2-not_found']);

test('a requirement declared not applicable does not make a run incomplete', async ({ small }) => {
  await using server = await startInProcess(small);
  const { dispatcher } = server;
  const { clients, ...target } = await targetFor(server, 'full');
  const { invalidGrant: _, ...others } = clients;
  const certified = (notApplicable: { invalidGrant?: string }) =>
    certify({ ...target, clients: others, notApplicable }, { seed: 1, only: CASES, dispatcher });
  const plain = await certified({});
  expect([plain.verdict, plain.classes.provisioning]).toEqual(['incomplete', 'partly']);
  const reason = 'no client can be suspended here';
  const report = await certified({ invalidGrant: reason });
  expect([report.verdict, report.classes.provisioning]).toEqual(['conformant', 'exercised']);
  expect(report.declared).toEqual([{ id: '7.1-invalid_grant', reason }]);
  const result = report.requirements.find(({ id }) => id === '7.1-invalid_grant')!;
  expect([result.status, result.reason]).toEqual([
    'untested',
    `declared not applicable by the target file: ${reason}`,
  ]);
});

test('rejects a client that is both supplied and declared not applicable', async () => {
  const client = (clientId: string) => ({ clientId, clientSecret: 'a' });
  const target = {
    ...{ baseUrl: 'http://a', authUrl: 'http://a' },
    clients: { primary: client('1'), unauthorized: client('2') },
    notApplicable: { unauthorized: 'none' },
  };
  await expect(resolveTarget(target)).rejects.toThrow(/clients\.unauthorized is supplied, but notApplicable/);
});
