/** Every law, as a probe. */
import type { Probe } from '../fixtures/judge/probe.ts';

export const LAWS: readonly Probe[] = [];
