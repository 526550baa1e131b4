/** Every probe, in the order of the sections. */
import { quiet, type Probe } from '../engine/run/probe.ts';
import { probes as service } from './1-service.ts';
import { probes as tokenResponse } from './2.1-token-response.ts';
import { probes as claims } from './2.2-claims.ts';
import { probes as screening } from './2.3-screening.ts';
import { probes as page } from './2.4-page.ts';
import { probes as tokenRequest } from './4.1-token-request.ts';
import { probes as window } from './4.2-window.ts';
import { probes as validWindows } from './4.2-valid-windows.ts';
import { probes as paging } from './4.2-paging.ts';
import { probes as nextAgain } from './4.2-next-again.ts';
import { probes as oneTenant } from './4.2-one-tenant.ts';
import { probes as pagesEverywhere } from './4.2-circumstances.ts';
import { probes as refusedEverywhere } from './5-circumstances.ts';
import { probes as authentication } from './5-authentication.ts';
import { probes as forged } from './5-forged.ts';
import { probes as tokens } from './5-tokens.ts';
import { probes as tenants } from './5-tenants.ts';
import { probes as events } from './6-events.ts';
import { probes as tokenErrors } from './7.1-token-errors.ts';
import { probes as restErrors } from './7.2-rest-errors.ts';
import { probes as limitsAndFailure } from './7.2-limits-and-failure.ts';
import { probes as versioning } from './9-versioning.ts';

/**
 * In the order in which they run: what is to be asked early as well as late stands before the walks, and quiet ones
 * stand together, where they can.
 */
export const PROBES: readonly Probe[] = [
  ...tokenResponse,
  ...claims,
  ...tokenRequest,
  ...service,
  ...refusedEverywhere,
  ...restErrors,
  ...quiet(validWindows),
  ...pagesEverywhere,
  ...quiet(screening),
  ...quiet(page),
  ...quiet(window),
  ...quiet(paging),
  ...quiet(nextAgain),
  ...quiet(oneTenant),
  ...quiet(authentication),
  ...quiet(events),
  ...quiet(versioning),
  ...tokens,
  ...quiet(forged),
  ...tenants,
  ...tokenErrors,
  ...limitsAndFailure,
];
