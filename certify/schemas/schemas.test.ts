/** The committed JSON Schemas equal the kit's definitions and accept what the kit reads and writes. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { conformantReport, incompleteReport, sampleReport } from '../render/sample.testing.ts';
import { z } from 'zod';
import { targetFileSchema } from '../../engine/target/target.ts';
import { reportSchema } from '../report/report.ts';
import { test } from '../../reference-server/testing.ts';

const DRAFT = { target: 'draft-2020-12', io: 'input' } as const;

/** Keyed by file name in `certify/schemas/`. */
const SCHEMAS: Readonly<Record<string, () => object>> = {
  'target.schema.json': () => ({
    title: 'Target file of the screenings conformance kit',
    ...z.toJSONSchema(targetFileSchema, DRAFT),
  }),
  'report.schema.json': () => ({
    title: 'report.json of the screenings conformance kit',
    ...z.toJSONSchema(reportSchema, DRAFT),
  }),
};

const schemaText = (name: string): string => `${JSON.stringify(SCHEMAS[name]!(), null, 2)}\n`;

const folder = import.meta.dirname;

for (const name of Object.keys(SCHEMAS))
  test(`${name} equals the definition (UPDATE_SCHEMAS=1 updates it)`, async () => {
    if (process.env['UPDATE_SCHEMAS']) await writeFile(join(folder, name), schemaText(name));
    expect(await readFile(join(folder, name), 'utf8')).toBe(schemaText(name));
  });

test('a report is valid by the schema of report.json', () => {
  const valid = new Ajv2020({ strict: false, validateFormats: false }).compile(
    SCHEMAS['report.schema.json']!(),
  );
  for (const report of [sampleReport(), conformantReport(), incompleteReport()]) {
    const written: unknown = JSON.parse(JSON.stringify(report));
    expect(valid(written), JSON.stringify(valid.errors)).toBe(true);
  }
  expect(valid({ ...sampleReport(), verdict: 'green' })).toBe(false);
});
