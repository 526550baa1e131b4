/** Every probe of the specs. */
import type { Probe } from '../fixtures/run/probe.ts';
import { probes as token } from './2-token.ts';
import { probes as page } from './2-page.ts';
import { probes as window } from './4.2-window.ts';
import { probes as paging } from './4.2-paging.ts';
import { probes as authentication } from './5-authentication.ts';
import { probes as events } from './6-events.ts';
import { probes as tokenErrors } from './7.1-token-errors.ts';
import { probes as restErrors } from './7.2-rest-errors.ts';
import { probes as limitsAndFailure } from './7.2-limits-and-failure.ts';

export const PROBES: readonly Probe[] = [
  ...token,
  ...page,
  ...window,
  ...paging,
  ...authentication,
  ...events,
  ...tokenErrors,
  ...restErrors,
  ...limitsAndFailure,
];
