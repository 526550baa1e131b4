/** A failure as labelled lines, for every rendering. */
import { messageLines, type EvidenceLine } from '../../render/facts.ts';
import type { ClientFailure, ClientReport } from '../report.ts';

export const linesOf = ({ requests, ...failure }: ClientFailure): readonly EvidenceLine[] =>
  [...messageLines(failure), { label: 'requests', texts: requests, kind: 'exchange' } as const].filter(
    ({ texts }) => texts.length > 0,
  );

/** What limits the verdict, where `--only` was given. */
export const selectionText = ({ selection }: ClientReport): string | undefined =>
  selection && `This run was limited to ${selection.join(', ')}: the verdict speaks of this selection alone.`;

/** The untested situations by what would make them testable. */
export function untestedByReason({
  situations,
}: ClientReport): readonly (readonly [string, readonly string[]])[] {
  const names = new Map<string, string[]>();
  for (const { status, name, reason = 'no reason was given' } of situations) {
    if (status === 'untested') names.set(reason, [...(names.get(reason) ?? []), name]);
  }
  return [...names];
}
