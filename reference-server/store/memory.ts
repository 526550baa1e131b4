/** A screening store in memory (pages of 4.2), and the parts of a service that has everything in memory. */
import { instant } from '../../engine/data/instant.ts';
import { compareKeys, rangeOf } from '../../engine/data/oracle.ts';
import type { Screening } from '../../engine/data/dataset.ts';
import { createTokenIssuer } from '../auth.ts';
import { GRANTED, type ScreeningStore, type ServiceParts } from '../parts.ts';

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

/** `own`: the addresses, and parts instead of the usual ones. */
export function memoryParts(
  tenants: ReadonlyMap<string, Iterable<Screening>>,
  clients: readonly Readonly<Record<'clientId' | 'clientSecret' | 'tenantId', string>>[],
  own: Pick<ServiceParts, 'baseUrl' | 'authUrl'> & Partial<ServiceParts>,
): ServiceParts {
  const named = { issuer: own.authUrl, audience: own.baseUrl };
  return {
    ...{ ...named, pathPrefix: '', tokenLifetimeSeconds: 3600, now: Date.now },
    store: createMemoryStore(tenants),
    tokens: createTokenIssuer(named),
    clients: {
      async authenticate(id, secret) {
        const known = clients.find((one) => one.clientId === id && one.clientSecret === secret);
        return known && { ...known, ...GRANTED };
      },
    },
    ...own,
  };
}
