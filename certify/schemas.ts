/** JSON Schemas of the files that users write and read, derived from the kit's own definitions. */
import { join, relative } from 'node:path';
import { z } from 'zod';
import { PACKAGE_FOLDER } from '../engine/package.ts';
import { reportSchema } from './report.ts';
import { targetFileSchema } from '../engine/target/target.ts';

const DRAFT = { target: 'draft-2020-12', io: 'input' } as const;

/** The path of the schema, relative to the folder of a target file. */
export function targetSchemaUrl(folder: string): string {
  const path = relative(folder, join(PACKAGE_FOLDER, 'certify/schemas/target.schema.json')).replaceAll(
    '\\',
    '/',
  );
  return path.startsWith('.') ? path : `./${path}`;
}

/** Keyed by file name in `certify/schemas/`. */
export const SCHEMAS: Readonly<Record<string, () => object>> = {
  'target.schema.json': () => ({
    title: 'Target file of the screenings conformance kit',
    ...z.toJSONSchema(targetFileSchema, DRAFT),
  }),
  'report.schema.json': () => ({
    title: 'report.json of the screenings conformance kit',
    ...z.toJSONSchema(reportSchema, DRAFT),
  }),
};

export const schemaText = (name: string): string => `${JSON.stringify(SCHEMAS[name]!(), null, 2)}\n`;
