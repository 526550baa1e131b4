/** A screening store in memory (pages of 4.2). */
import { compareInstants, instant } from '../../engine/data/instant.ts';
import { compareKeys, lowerBound } from '../../engine/data/oracle.ts';
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
      const all = stored.get(tenantId.toLowerCase()) ?? [];
      const start = lowerBound(all, (one) =>
        fromId === undefined
          ? compareInstants(one.at, from) >= 0
          : compareKeys(one, { at: from, id: fromId }) > 0,
      );
      const end = Math.max(
        start,
        lowerBound(all, (one) => compareInstants(one.at, to) >= 0),
      );
      return { items: all.slice(start, Math.min(end, start + pageSize)), more: end > start + pageSize };
    },
  };
}
