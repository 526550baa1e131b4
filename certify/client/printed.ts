/** What a client printed, read as the screenings that it collected. */
import { integerOf, isObject, member, parseJson, type Json } from '../../engine/client/json.ts';

interface Collected {
  readonly id: bigint;
  readonly json: Json;
}

export interface Printed {
  /** In the order printed. */
  readonly screenings: readonly Collected[];
  /** Lines that begin like a JSON object and are none. */
  readonly malformed: readonly string[];
}

/** Lines that are no JSON objects, or that name no id, are the client's own talk. */
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

/** Languages without 64-bit integers may carry an id as text. */
const idOf = (value: Json | undefined): bigint | undefined =>
  typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value) : integerOf(value);
