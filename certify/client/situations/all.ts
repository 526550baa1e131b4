/** All situations, in the order of the report, and those with events in addition to REST (sections 2.3 and 6). */
import { situationsOf, type Situation } from '../situation.ts';
import { failureSituations } from './failures.ts';
import { pagesSituations } from './pages.ts';
import { tokenSituations } from './tokens.ts';
import { envelope } from '../../../reference-server/events.ts';
import type { Screening } from '../../../engine/data/dataset.ts';
import { plain, screening, usual, within, WINDOW } from './blocks.ts';

const eventOf = (one: Screening): string => envelope({ ...one, id: String(one.id) });

/** One arrives after the walk, one lies outside the window. */
const late = screening(700_001n, '2026-03-30T12:00:00Z');
const outside = screening(700_002n, '2026-05-02T12:00:00Z');
const rest = within(plain(46), WINDOW);

/** Every third event twice (queues deliver at least once), and the first ten again at the end. */
const events = [
  ...rest.flatMap((one, index) => (index % 3 === 0 ? [one, one] : [one])),
  late,
  outside,
  ...rest.slice(0, 10),
  late,
].map(eventOf);

const eventSituations = situationsOf('6', {
  'events-beside-rest': {
    optional: true,
    title: 'a screening that is received by REST and as events, some of them twice, is collected once',
    lookAt: [
      'deduplication: one set of ids for both transports',
      'the key: the id of the screening (data.id), not the id of the event’s envelope',
    ],
    stage: () => usual(),
    events,
    onlyEvents: [late, outside],
    met: ({ printed, expected }) =>
      printed.screenings.length > expected.length ||
      printed.screenings.some(({ id }) => id === late.id || id === outside.id) ||
      'nothing was printed that only the events hold (SCREENINGS_EVENTS): the client reads no events',
  },
});

/** The first one is played before all others: a client that fails it cannot pass them. */
export const SITUATIONS: readonly Situation[] = [
  ...pagesSituations,
  ...tokenSituations,
  ...failureSituations,
  ...eventSituations,
];
