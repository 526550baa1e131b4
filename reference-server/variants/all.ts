/** All variants; those of a group can run together in one server. */
import * as accidents from './accidents.ts';
import * as health from './health.ts';
import * as pages from './pages.ts';
import * as refusals from './refusals.ts';
import * as stacks from './stacks.ts';
import * as stores from './stores.ts';
import * as tokens from './tokens.ts';
import * as transport from './transport.ts';
import type { Variant } from './variant.ts';

export const GROUPS: Readonly<Record<string, readonly Variant[]>> = {
  'behind a gateway': [
    ...transport.addresses,
    ...tokens.signed,
    ...pages.links,
    ...transport.connections,
    ...refusals.problems,
  ],
  'with its own spelling': [
    ...pages.spelledNext,
    ...pages.bareNext,
    ...pages.oneLink,
    ...pages.furtherMembers,
    ...refusals.lists,
    ...tokens.clocks,
    ...transport.gzipped,
    ...transport.cachedHeaders,
  ],
  'with relative links': [
    ...pages.screenings,
    ...pages.relativeNext,
    ...pages.finalPages,
    ...refusals.texts,
    ...refusals.codes,
    ...transport.encodings,
  ],
  'with short pages': [
    ...pages.shortPages,
    ...transport.protocols,
    ...pages.local,
    ...pages.relations,
    ...tokens.kept,
    ...refusals.tokenEndpoint,
  ],
  'with a rate limit': [
    ...transport.limited,
    ...pages.relativeLink,
    ...tokens.signedOtherwise,
    ...refusals.bodies,
    ...refusals.dates,
  ],
  'with encoded links': [...pages.encoded, ...accidents.lockedWith429, ...accidents.readings],
  'with accidents': [...accidents.failures, ...accidents.gateway, ...accidents.lockedWith401, ...stores.late],
  'with a store of microseconds': [
    ...stores.microseconds,
    ...accidents.brokenOnce,
    ...accidents.slowedDown,
    ...accidents.parameters,
  ],
  'with a store of milliseconds': [
    ...stores.milliseconds,
    ...stores.equalData,
    ...stores.clocks,
    ...stores.queues,
    ...accidents.redeployed,
  ],
  'that rounds to microseconds': stores.rounded,
  'that cuts to ticks': stores.ticks,
  'that serves two requests concurrently': [...health.overloaded, ...health.lockedByOthers],
  'that is restarted': [...health.restarted, ...health.datedBehind],
  'with a quota and a wrong Date': [...health.dailyQuota, ...health.datedAhead],
  'with compression': transport.compressed,
  'with a gateway for odd paths': [...refusals.oddPaths],
  'with normalised paths': [...pages.signed, ...refusals.normalizedPaths],
  'with a guard that answers 403': accidents.guards.html,
  'with a guard that closes connections': accidents.guards.resets,
  'with a guard that answers 429': accidents.guards.throttles,
  'with a guard for each tenant': accidents.guards.perTenant,
  'in a servlet container': stacks.container,
  'on a permissive framework': stacks.library,
  'after a firewall': stacks.firewall,
  'with tenants in capitals': [...stacks.capitals, ...accidents.halfDown],
  'with unset clocks': stores.extremes,
  'with a dataset of a part': stores.part,
  'with a cache': health.cached,
  'with a cache that says Age': health.cachedWithAge,
};

/** Too slow for the daily tests. */
export const ALONE: readonly Variant[] = [...transport.slow, ...pages.wide, ...pages.pictures];
