/** Queues with more than one event per screening. */
import type { Target } from '../../engine/target/target.ts';
import type { Variant } from './variant.ts';

const withEvents = (change: (line: string, index: number) => readonly string[]): Pick<Variant, 'target'> => ({
  target: (target): Target => ({ ...target, events: target.events?.flatMap(change) }),
});

const renamed = (line: string, name: string): string =>
  line.replace(/"id":"[^"]*"/, `"id":"${name}"`).replace(/"type":"[^"]*"/, `"type":"example.${name}"`);

export const queues: readonly Variant[] = [
  {
    name: 'events of other types in the same queue',
    ...withEvents((line, index) => {
      if (index % 20 !== 7) return [line];
      const begun = renamed(line, `begun.${index}`).replace(/"data":.*/s, '"data":{"device":"SN-1"}}');
      return [begun.replace(/example\.begun\.\d+/, 'example.begun'), line];
    }),
  },
  {
    name: 'an event of each version of a screening that was amended',
    ...withEvents((line, index) => {
      if (index % 50 !== 9) return [line];
      const older = line
        .replace(/"id":"[^"]*"/, `"id":"older-${index}"`)
        .replace(/"result":[^,}]*/, '"result":"draft"');
      return [older, line];
    }),
  },
];
