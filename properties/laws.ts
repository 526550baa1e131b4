/** Every law, as a probe. */
import type { Probe } from '../fixtures/judge/probe.ts';
import { ARRIVAL_LAWS } from './arrivals.ts';
import { PAGING_LAWS } from './paging.ts';
import { REFUSAL_LAWS } from './refusals.ts';

export const LAWS: readonly Probe[] = [...PAGING_LAWS, ...REFUSAL_LAWS, ...ARRIVAL_LAWS];
