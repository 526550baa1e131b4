/** A screening store in memory (pages of 4.2). */
import { instant } from '../../engine/data/instant.ts';
import { compareKeys, rangeOf } from '../../engine/data/oracle.ts';
import type { Screening } from '../../engine/data/dataset.ts';
import type { ScreeningStore } from '../parts.ts';

/** Screenings by tenant UUID in lower case; exactly the tenants in the map are onboarded. */
export function createMemoryStore(tenants: ReadonlyMap<string, Iterable<Screening>>): ScreeningStore {
  const stored = new Map(
    [...tenants].map(([tenantId, screenings]) => [
      tenantId,
      [...screenings].map((one) => ({ ...one, at: instant(one.testTime) })).sort(compareKeys),
    ]),
  );
  return {
    isOnboarded: async (tenantId) => stored.has(tenantId.toLowerCase()),
    async page({ tenantId, from, to, fromId, pageSize }) {
      const left = rangeOf(stored.get(tenantId.toLowerCase()) ?? [], { from, afterId: fromId, to });
      return { items: left.slice(0, pageSize), more: left.length > pageSize };
    },
  };
}
