/** A failure as labelled lines, for every rendering. */
import { messageLines, type EvidenceLine } from '../../render/facts.ts';
import type { ClientFailure } from '../report.ts';

export const linesOf = ({ requests, ...failure }: ClientFailure): readonly EvidenceLine[] =>
  [...messageLines(failure), { label: 'requests', texts: requests, kind: 'exchange' } as const].filter(
    ({ texts }) => texts.length > 0,
  );
