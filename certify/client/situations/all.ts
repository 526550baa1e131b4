/** All situations, in the order of the report, and those with events in addition to REST (sections 2.3 and 6). */
import type { Situation, SituationRow } from '../situation.ts';
import { failureSituations, refusalSituations } from './failures.ts';
import { pagesSituations, plainWalk } from './pages.ts';
import { tokenSituations } from './tokens.ts';
import { envelope } from '../../../reference-server/events.ts';
import type { Screening } from '../../../engine/data/dataset.ts';
import { plain, screening, within, WINDOW } from '../data.ts';
import { usual } from './steps.ts';

const eventOf = ({ id, tenantId, testTime, json }: Screening): string =>
  envelope({ id: String(id), tenantId, testTime, json });

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

const eventSituations: readonly SituationRow[] = [
  {
    name: 'events-beside-rest',
    section: '6',
    optional: true,
    title: 'a screening that comes by REST and as events, some of them twice, is collected once',
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
];

const ROWS: readonly SituationRow[] = [
  plainWalk,
  ...pagesSituations,
  ...tokenSituations,
  ...failureSituations,
  ...refusalSituations,
  ...eventSituations,
];

export const SITUATIONS: readonly Situation[] = ROWS.map((row) => ({ level: 'MUST', ...row }));
