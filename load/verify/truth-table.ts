/** What verifications print alike: a server, its truth, what was found, and whether that is right, open or wrong. */
import { textTable } from '../scenarios/words.ts';

export interface TruthRow {
  readonly server: string;
  readonly truth: string;
  readonly found: string;
  /** Of the figure, as a share; absent where the truth is no figure. */
  readonly error?: number;
  /** Right, or honestly undecided. */
  readonly verdict: 'right' | 'undecided' | 'wrong';
}

export function truthTable(rows: readonly TruthRow[]): { text: string; ok: boolean } {
  const table = textTable(
    ['server', 'truth', 'found', 'error', 'verdict'],
    rows.map(({ server, truth, found, error, verdict }) => [
      server,
      truth,
      found,
      error === undefined ? '' : `${(error * 100).toFixed(1)} %`,
      verdict,
    ]),
  );
  const count = (verdict: TruthRow['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return {
    text: `${table}\n\n${count('right')} right, ${count('undecided')} undecided, ${count('wrong')} wrong`,
    ok: count('wrong') === 0 && count('right') * 2 > rows.length,
  };
}
