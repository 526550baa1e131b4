/** All faults by theme. */
import type { Fault } from './fault.ts';
import { answered } from './answers.ts';
import { authentication } from './authentication.ts';
import { cached } from './cache.ts';
import { dialects, oversights } from './dialects.ts';
import { bypasses } from './bypass.ts';
import { events } from './events.ts';
import { forged } from './forged.ts';
import { limits } from './limits.ts';
import { outages } from './outage.ts';
import { nearMisses } from './near-misses.ts';
import { next, nextAgain } from './next.ts';
import { paging } from './paging.ts';
import { intermittent, rarePlaces } from './rare-places.ts';
import { readOnly } from './read-only.ts';
import { recommended } from './recommended.ts';
import { restErrors } from './rest-errors.ts';
import { shape } from './shape.ts';
import { paths, tenants } from './tenants.ts';
import { tokenErrorFaults } from './token-errors.ts';
import { tokenRequests } from './token-requests.ts';
import { tokens } from './tokens.ts';
import { farWindows } from './far-windows.ts';
import { window } from './window.ts';

export const THEMES: Readonly<Record<string, readonly Fault[]>> = {
  'the service': readOnly,
  'screenings and pages': shape,
  'any answer': answered,
  windows: window,
  'windows far away': farWindows,
  'order and cursors': paging,
  'next and Link': next,
  'next asked again': nextAgain,
  caches: cached,
  'one answer in many': intermittent,
  tokens,
  authentication: [...authentication, ...tenants],
  'whose token, and for how long': forged,
  'whose path': paths,
  'authentication bypass': bypasses,
  'dialects of clients': dialects,
  'token errors': tokenErrorFaults,
  'token requests': tokenRequests,
  'REST errors': restErrors,
  'near misses': nearMisses,
  oversights,
  'rate limit': limits,
  outage: outages,
  events,
  'rare places': rarePlaces,
  recommendations: recommended,
};

export const FAULTS: readonly Fault[] = Object.values(THEMES).flat();
