/** Section 9: the version in the path. */
import { observed, type Probe } from '../fixtures/run/probe.ts';
import { walksOfSeveralPages } from '../fixtures/run/standard-walks.ts';

export const probes: readonly Probe[] = [observed(['9-prefix'], 'next stays under /v1', walksOfSeveralPages)];
