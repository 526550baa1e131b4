/** When `--watch` runs again. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect } from '@playwright/test';
import { reasons } from './watch.ts';
import { test } from '../../reference-server/testing.ts';

test('runs again on a key or a change of files, and ends on q', async () => {
  const directory = test.info().outputPath();
  const target = join(directory, 'target.json');
  await writeFile(target, '{}');
  const input = new PassThrough();
  const { signal } = new AbortController();
  const next = async (files: string[], folders: string[], act: () => Promise<void> | void) => {
    const again = reasons({ files, folders, input, signal });
    const reason = again.next();
    await act();
    const { value } = await reason;
    await again.return(undefined);
    return value as string | undefined;
  };
  expect(await next([], [], () => void input.write('r'))).toBe('asked for');
  expect(await next([target], [], () => writeFile(target, '{ }'))).toBe(`${target} changed`);
  expect(await next([], [directory], () => writeFile(join(directory, 'server.js'), ''))).toBe(
    'server.js changed',
  );
  expect(await next([], [], () => void input.write('q\n'))).toBe(undefined);
});
