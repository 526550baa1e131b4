/** Plays every situation with a small client, without real waiting. */
import { certifyClient, type Options } from '../certify-client.ts';
import type { ClientReport } from '../report.ts';
import { fakeWorld } from './fake-world.ts';
import { smallClient, type Habits } from './small-client.ts';

export const played = (habits: Habits, options: Partial<Options> = {}): Promise<ClientReport> =>
  certifyClient(smallClient(habits), {
    name: 'a small client',
    kit: { name: 'kit', version: '0' },
    concurrency: 4,
    pollingMs: 60_000,
    world: fakeWorld,
    ...options,
  });
