/** Parses the output of a client into the screenings that it collected. */
import { integerOf, isObject, member, parseJson, type Json } from '../../engine/client/json.ts';

interface Collected {
  readonly id: bigint;
  readonly json: Json;
}

export interface Printed {
  /** In the order printed. */
  readonly screenings: readonly Collected[];
  /** Lines that start like a JSON object but are not one. */
  readonly malformed: readonly string[];
}

/** Ignores lines that are not JSON objects, or that have no id, as messages of the client. */
export function readPrinted(stdout: string): Printed {
  const screenings: Collected[] = [];
  const malformed: string[] = [];
  for (const line of stdout.replace(/^\uFEFF/, '').split('\n')) {
    const text = line.trim();
    if (!text.startsWith('{')) continue;
    const json = parseJson(text);
    if (!isObject(json)) malformed.push(text);
    else {
      const id = idOf(member(json, 'id'));
      if (id !== undefined) screenings.push({ id, json });
    }
  }
  return { screenings, malformed };
}

/** Accepts ids as text, for languages without 64-bit integers. */
const idOf = (value: Json | undefined): bigint | undefined =>
  typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value) : integerOf(value);
