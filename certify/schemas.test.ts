/** The committed JSON Schemas: made from the kit's own definitions, and true of what the kit reads and writes. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { conformantReport, incompleteReport, sampleReport } from './render/sample.testing.ts';
import { SCHEMAS, schemaText } from './schemas.ts';

const folder = join(import.meta.dirname, 'schemas');
const validator = (name: string) =>
  new Ajv2020({ strict: false, validateFormats: false }).compile(SCHEMAS[name]!());

for (const name of Object.keys(SCHEMAS)) {
  test(`${name} is as the definition says (UPDATE_SCHEMAS=1 writes it anew)`, async () => {
    if (process.env['UPDATE_SCHEMAS']) await writeFile(join(folder, name), schemaText(name));
    expect(await readFile(join(folder, name), 'utf8')).toBe(schemaText(name));
  });
}

test('a target file is held to its members', () => {
  const valid = validator('target.schema.json');
  const clients = { primary: { clientId: 'a', clientSecret: '${S}' } };
  const target = { $schema: 'x', baseUrl: 'http://a', authUrl: 'http://b', clients };
  expect(valid(target)).toBe(true);
  expect(valid({ ...target, bseUrl: '' })).toBe(false);
  expect(valid({ ...target, clients: {} })).toBe(false);
});

test('what the kit writes is as the schema of report.json says', () => {
  const valid = validator('report.schema.json');
  for (const report of [sampleReport(), conformantReport(), incompleteReport()]) {
    const written: unknown = JSON.parse(JSON.stringify(report));
    expect(valid(written), JSON.stringify(valid.errors)).toBe(true);
  }
  expect(valid({ ...sampleReport(), verdict: 'green' })).toBe(false);
});
