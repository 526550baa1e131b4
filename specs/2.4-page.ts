/** Section 2.4: the page. */
import { observed, type Probe } from '../fixtures/run/probe.ts';
import { pagesOfEverySize, walksOfSeveralPages } from '../fixtures/run/standard-walks.ts';

export const probes: readonly Probe[] = [
  observed(
    ['2.4-items', '2.4-links', '2.4-next-absent', '2.4-utf8'],
    'pages of every size',
    pagesOfEverySize,
  ),
  observed(
    ['2.4-next', '2.4-next-absolute', '2.4-next-no-empty-page', '2.4-full-pages'],
    'walks over several pages',
    walksOfSeveralPages,
  ),
];
