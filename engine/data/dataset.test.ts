import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { parseScreening, readDataset, writeDataset } from './dataset.ts';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';

const TENANT = '00000000-0000-4000-8000-000000000001';

test('reads a written dataset without any change', async () => {
  const path = test.info().outputPath('some.ndjson');
  const screenings = [...generateScreenings({ tenantId: TENANT, count: 2_000, bigIds: true })];
  await writeDataset(path, screenings);
  expect(await readDataset(path)).toEqual(screenings);
  expect(await readFile(path, 'utf8')).toBe(screenings.map(({ json }) => `${json}\n`).join(''));
});

test('keeps ids exact and additional fields unchanged', () => {
  const line = `{"z":1.50, "id":9007199254740993,"tenantId":"${TENANT}","testTime":"2024-01-01T00:00:00.10Z"}`;
  expect(parseScreening(line)).toEqual({
    id: 9007199254740993n,
    tenantId: TENANT,
    testTime: '2024-01-01T00:00:00.10Z',
    json: line,
  });
});

test('ignores blank lines, a byte order mark and CRLF', async () => {
  const path = test.info().outputPath('windows.ndjson');
  const [screening] = [...generateScreenings({ tenantId: TENANT, count: 1 })];
  await writeFile(path, `\uFEFF\r\n${screening?.json}\r\n\r\n`);
  expect(await readDataset(path)).toEqual([screening]);
});

const line = (id: string, tenantId: string, testTime: string): string =>
  `{"id":${id},"tenantId":${tenantId},"testTime":${testTime}}`;
const [ID, TENANT_TEXT, TIME] = ['1', `"${TENANT}"`, '"2024-01-01T00:00:00Z"'];
const WRONG: [text: string, message: string][] = [
  ['nonsense', 'not JSON'],
  ['[]', 'not a JSON object'],
  [line('"1"', TENANT_TEXT, TIME), '"id" must be an integer'],
  [line('1.0', TENANT_TEXT, TIME), '"id" must be an integer'],
  [line('9223372036854775808', TENANT_TEXT, TIME), '"id" must lie within 64 bits'],
  [line(ID, '"me"', TIME), '"tenantId" must be a UUID'],
  [line(ID, TENANT_TEXT, '"2024-01-01T00:00:00"'), '"testTime" must be an RFC 3339 date-time with an offset'],
  ['{}', '"id" must be an integer'],
];
for (const [text, message] of WRONG) {
  test(`rejects ${text} with file and line`, async () => {
    const path = test.info().outputPath('wrong.ndjson');
    await writeFile(path, `${line(ID, TENANT_TEXT, TIME)}\n${text}\n`);
    await expect(readDataset(path)).rejects.toThrow(`${path}:2: ${message}`);
  });
}
