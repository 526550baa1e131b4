/** Section 9: the version in the path. */
import { observed, type Probe } from '../engine/run/probe.ts';
import { walksOfSeveralPages } from '../engine/run/walk/standard-walks.ts';

export const probes: readonly Probe[] = [observed(['9-prefix'], 'next stays under /v1', walksOfSeveralPages)];
