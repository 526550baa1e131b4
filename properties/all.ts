/** Every property as a check. */
import { takeCollected } from '../fixtures/test.ts';
import type { Check } from '../engine/run/check.ts';
import './paging.spec.ts';
import './windows.spec.ts';
import './refusals.spec.ts';
import './token-refusals.spec.ts';
import './arrivals.spec.ts';

export const PROPERTIES = takeCollected();

export function propertyTitled(title: string): Check {
  const found = PROPERTIES.find((property) => property.title === title);
  if (!found) throw new Error(`no property has the title "${title}"`);
  return found;
}
