/** All faults by theme. */
import type { Fault } from './fault.ts';
import { answered } from './answers.ts';
import { authentication } from './authentication.ts';
import { cached } from './cache.ts';
import { dialects } from './dialects.ts';
import { bypasses } from './bypass.ts';
import { events } from './events.ts';
import { forged } from './forged.ts';
import { limits } from './limits.ts';
import { outages } from './outage.ts';
import { next, nextAgain } from './next.ts';
import { paging } from './paging.ts';
import { intermittent, rarePlaces } from './rare-places.ts';
import { readOnly } from './read-only.ts';
import { restErrors } from './rest-errors.ts';
import { shape } from './shape.ts';
import { tenants } from './tenants.ts';
import { tokenErrorFaults } from './token-errors.ts';
import { tokens } from './tokens.ts';
import { window } from './window.ts';

export const THEMES: Readonly<Record<string, readonly Fault[]>> = {
  'writing methods': readOnly,
  'screenings and pages': shape,
  'any answer': answered,
  windows: window,
  'order and cursors': paging,
  'next and Link': next,
  'next requested again': nextAgain,
  caches: cached,
  'one answer in many': intermittent,
  tokens,
  authentication,
  'separation of tenants': tenants,
  'forged tokens and lifetimes': forged,
  'authentication bypass': bypasses,
  'dialects of clients': dialects,
  'token errors': tokenErrorFaults,
  'REST errors': restErrors,
  'rate limit': limits,
  outage: outages,
  events,
  'rare combinations': rarePlaces,
};

export const FAULTS: readonly Fault[] = Object.values(THEMES).flat();

/** Throws an Error for an unknown name. */
export function faultNamed(name: string): Fault {
  const found = FAULTS.find((fault) => fault.name === name);
  if (!found) throw new Error(`no fault is called ${name}`);
  return found;
}
