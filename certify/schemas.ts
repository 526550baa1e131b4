/** JSON Schemas of what users write and read, made from the definitions that the kit itself checks with. */
import { z } from 'zod';
import { KIT_NAME } from '../engine/package.ts';
import { reportSchema } from './report.ts';
import { targetFileSchema } from '../engine/target/target.ts';

const DRAFT = { target: 'draft-2020-12', io: 'input' } as const;

/** How a target file names its schema, where the kit is installed beside it; in a clone, `certify/schemas/…`. */
export const TARGET_SCHEMA_URL = `./node_modules/${KIT_NAME}/certify/schemas/target.schema.json`;

/** By the name of the file in `certify/schemas/`. */
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
