import { expect } from '@playwright/test';
import { screeningsUrl } from '../../engine/client/page.ts';
import { faultNamed } from '../faults/all.ts';
import { mintToken, send, test } from '../testing.ts';

for (const name of [
  'pageSize is not validated after fifteen requests',
  'PATCH of any id sets a member of every screening',
])
  test(`a second server with the same fault begins like the first one: ${name}`, async ({ start }) => {
    const answersOfNew = async (): Promise<string[]> => {
      const target = (await start(faultNamed(name).server)).target();
      const { primary } = target.clients;
      const headers = { authorization: `Bearer ${await mintToken(target, primary)}` };
      const url = screeningsUrl(target.baseUrl, primary.tenantId);
      const texts: string[] = [];
      const ask = async (path: string, method = 'GET'): Promise<unknown> =>
        texts.push((await send(`${url}${path}`, { method, headers })).text);
      await ask('?from=2024-06-15T12:00:00Z&to=2024-06-15T12:00:01Z');
      await ask('/1', 'PATCH');
      for (let time = 0; time < 20; time += 1)
        await ask('?from=2024-06-15T12:00:00Z&to=2024-06-15T12:00:01Z&pageSize=0');
      return texts;
    };
    expect(await answersOfNew()).toEqual(await answersOfNew());
  });
