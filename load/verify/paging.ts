/** `verify paging`: each planted mistake has to be named, and a clean server never. */
import type { DepthFinding } from '../estimate/depth.ts';
import { PAGING_DEFECTS, type PagingDefect } from '../simulated/paging-defects.ts';
import { startSimulatedServer } from '../simulated/start.ts';
import { paging } from '../scenarios/paging.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession, OPTIONS } from './session.ts';

export interface VerifyPagingOptions {
  readonly cleanRuns: number;
  readonly screenings: number;
  readonly k6: string;
  readonly tell: (line: string) => void;
}

export interface PagingRow {
  readonly planted: PagingDefect | 'nothing';
  readonly depth: DepthFinding;
  readonly findings: readonly string[];
  readonly right: boolean;
}

/** What has to be said of each. */
const EXPECTED: Readonly<
  Record<PagingDefect | 'nothing', (depth: DepthFinding, findings: readonly string[]) => boolean>
> = {
  offset: (depth) => depth.shape === 'grows-with-depth' && /OFFSET/.test(depth.likelyCause ?? ''),
  'or-form': (depth) => depth.shape === 'grows-with-depth' && / OR /.test(depth.likelyCause ?? ''),
  'sort-by-text': (depth) => depth.shape === 'slow-first-page',
  'generic-plan': (depth) => depth.shape === 'slow-on-long-windows' && /plan/.test(depth.likelyCause ?? ''),
  'millisecond-cursor': (depth, findings) => depth.flat && findings.includes('4.2-r6-next-from'),
  nothing: (depth, findings) => depth.flat && findings.length === 0,
};

export async function verifyPaging({
  cleanRuns,
  screenings,
  k6,
  tell,
}: VerifyPagingOptions): Promise<PagingRow[]> {
  const planted = [...PAGING_DEFECTS, ...Array.from({ length: cleanRuns }, () => 'nothing' as const)];
  const rows: PagingRow[] = [];
  for (const [index, defect] of planted.entries()) {
    await using server = await startSimulatedServer({
      screenings,
      service: { workers: 16, serviceMs: 1.5, distribution: 'exponential' },
      seed: index,
      ...(defect === 'nothing' ? {} : { paging: defect }),
    });
    const session = await openSession(k6, server.target(), { seed: index * 100 });
    const depth = (await paging.run(session, { ...OPTIONS, pageSize: 500, maxPages: 2500 })).depth!;
    const findings = [...new Set(session.findings.map(({ id }) => id))];
    const row = { planted: defect, depth, findings, right: EXPECTED[defect](depth, findings) };
    rows.push(row);
    tell(`${defect}: ${depth.shape}${row.right ? '' : ' (wrong)'}`);
  }
  return rows;
}

export function pagingTable(rows: readonly PagingRow[]): { text: string; ok: boolean } {
  const clean = rows.filter(({ planted }) => planted === 'nothing');
  const defects = rows.filter(({ planted }) => planted !== 'nothing');
  const ratio = (value: number): string => value.toFixed(2);
  const table = textTable(
    ['planted', 'shape', 'deep ×', 'first ×', 'warm ×', 'findings', 'right', 'look for'],
    [...defects, ...clean.slice(0, 3)].map(({ planted, depth, findings, right }) => [
      planted,
      depth.shape,
      ratio(depth.ratios.deep),
      ratio(depth.ratios.first),
      ratio(depth.ratios.warm),
      findings.join(' '),
      right ? 'yes' : 'no',
      depth.likelyCause?.slice(0, 60) ?? '',
    ]),
  );
  const count = (some: readonly PagingRow[]): string =>
    `${some.filter(({ right }) => right).length} of ${some.length}`;
  return {
    text: `${table}\n\nnamed: ${count(defects)} planted mistakes; passed: ${count(clean)} runs of the clean server`,
    ok: rows.every(({ right }) => right),
  };
}
