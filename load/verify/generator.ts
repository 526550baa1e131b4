/** `verify generator`: a starved generator is declared void, and a quota is told from saturation. */
import { startSimulatedServer } from '../simulated/start.ts';
import { runScenario } from '../scenarios/all.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession, OPTIONS } from './session.ts';

export interface GeneratorRow {
  readonly planted: string;
  readonly said: string;
  readonly right: boolean;
}

export async function verifyGenerator(k6: string, tell: (line: string) => void): Promise<GeneratorRow[]> {
  const rows: GeneratorRow[] = [];
  const add = (row: GeneratorRow): void => {
    rows.push(row);
    tell(`${row.planted}: ${row.said}`);
  };
  {
    // Two VUs at 100 ms a page carry 20/s; 100/s are due.
    await using server = await startSimulatedServer({
      service: { workers: 64, serviceMs: 100, distribution: 'deterministic' },
    });
    const session = await openSession(k6, server.target(), { maxVUs: 2, pageSize: 10 });
    const result = await runScenario('smoke', session, OPTIONS);
    const said = result.void === false ? 'a result' : `void: ${result.void}`;
    add({ planted: 'a generator with 2 VUs', said, right: result.void !== false });
  }
  {
    await using server = await startSimulatedServer({
      service: { workers: 2, serviceMs: 20, distribution: 'exponential' },
    });
    const session = await openSession(k6, server.target(), { pageSize: 10 });
    const result = await runScenario('capacity', session, OPTIONS);
    const said = result.capacity
      ? `${result.capacity.limitedBy}, ${result.capacity.requestsPerSecond.toFixed(0)}/s`
      : String(result.void);
    add({ planted: 'a server saturated at 100/s', said, right: result.capacity?.limitedBy === 'saturation' });
  }
  {
    await using server = await startSimulatedServer({
      limiter: { kind: 'token-bucket', limit: 60, windowMs: 1000, burst: 30 },
      clients: 2,
    });
    const session = await openSession(k6, server.target(), { pageSize: 10 });
    const result = await runScenario('capacity', session, OPTIONS);
    const figure = result.capacity;
    const said = figure
      ? `${figure.limitedBy}, ${figure.requestsPerSecond.toFixed(0)}/s a client, ${figure.perServer?.requestsPerSecond.toFixed(0) ?? '?'}/s with two`
      : String(result.void);
    add({ planted: 'a quota of 60/s a client', said, right: figure?.limitedBy === 'quota' });
  }
  return rows;
}

export function generatorTable(rows: readonly GeneratorRow[]): { text: string; ok: boolean } {
  const table = textTable(
    ['planted', 'right', 'said'],
    rows.map((row) => [row.planted, row.right ? 'yes' : 'no', row.said]),
  );
  return { text: table, ok: rows.every(({ right }) => right) };
}
