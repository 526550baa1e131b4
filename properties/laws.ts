/** Every law, as a probe. */
import { ARRIVAL_LAWS } from './arrivals.ts';
import type { LawCheck } from './law.ts';
import { PAGING_LAWS } from './paging.ts';
import { REFUSAL_LAWS } from './refusals.ts';

export const LAWS: readonly LawCheck[] = [...PAGING_LAWS, ...REFUSAL_LAWS, ...ARRIVAL_LAWS];

/** The law of that name. Throws where there is none. */
export function lawNamed(name: string): LawCheck {
  const found = LAWS.find(({ law }) => law === name);
  if (!found) throw new Error(`no law is called "${name}"`);
  return found;
}
