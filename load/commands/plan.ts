/** `npm run load -- plan`: from a measured capacity to requests, utilisation, waiting, replicas and cost. */
import { readFile, writeFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { median } from '../estimate/numbers.ts';
import { planHtml } from '../plan/html.ts';
import { plan, type Measured } from '../plan/plan.ts';
import { EXIT, type CapacityFigure, type LoadResult } from '../result.ts';
import { UsageError } from '../../engine/errors.ts';

export interface PlanFlags {
  readonly from: string;
  readonly tokenFrom?: string;
  readonly measuredReplicas: number;
  readonly tenants: number;
  readonly poll: number;
  readonly pollSpread?: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetime: number;
  readonly utilisation: number;
  readonly peakFactor: number;
  readonly retries: number;
  readonly spare: number;
  readonly outage: number;
  readonly growth: number;
  readonly costPerReplica?: number;
  readonly html: string;
  readonly json?: boolean;
}

/**
 * Prints the plan and writes its page. 0: what was measured carries it, 1: it does not, 3: the capacity is none, or was
 * not confirmed, or the answers were wrong. Throws UsageError.
 */
export async function planCommand(flags: PlanFlags): Promise<number> {
  const result = await readResult(flags.from, 'capacity');
  const figure = result.capacity;
  if (!figure || result.void !== false) {
    throw new UsageError(
      `${flags.from}: holds no capacity${result.void ? ` (the run was void: ${result.void})` : ''}`,
    );
  }
  if (!(figure.interval[0] > 0)) {
    console.log(`nothing to plan with: ${(result.summary ?? []).join('; ')}`);
    return EXIT.void;
  }
  const spreadSeconds = flags.pollSpread ?? flags.poll;
  if (spreadSeconds > flags.poll) throw new UsageError('--poll-spread is a part of --poll');
  if (flags.retries >= 1) throw new UsageError('--retries is a share below 1');
  const tokenPrice = flags.tokenFrom === undefined ? 1 : await tokenPriceOf(flags.tokenFrom, figure);
  const { tenants, screeningsPerDay, pageSize, peakFactor, retries } = flags;
  const habits = { tenants, screeningsPerDay, pageSize, peakFactor, retries, tokenPrice, spreadSeconds };
  const planned = plan(
    measuredBy(result, figure, flags.measuredReplicas),
    { ...habits, pollSeconds: flags.poll, tokenLifetimeSeconds: flags.tokenLifetime },
    {
      utilisation: flags.utilisation,
      spare: flags.spare,
      outageSeconds: flags.outage,
      growth: flags.growth,
      ...(flags.costPerReplica === undefined ? {} : { costPerReplica: flags.costPerReplica }),
    },
  );
  const warnings = [
    ...doubts(result, figure),
    ...planned.warnings,
    ...(flags.tokenFrom === undefined
      ? ['a token call is taken to cost as much as a page: measure it, and give --token-from']
      : []),
  ];
  console.log(
    flags.json
      ? JSON.stringify({ ...planned, warnings }, null, 2)
      : [
          ...planned.steps,
          `what becomes the limit first: ${planned.limitedFirstBy}`,
          ...warnings.map((warning) => `warning: ${warning}`),
        ].join('\n'),
  );
  await mkdir(dirname(flags.html), { recursive: true });
  await writeFile(flags.html, planHtml({ ...planned, warnings }, result));
  if (!flags.json) console.log(`  ${flags.html}`);
  if (doubts(result, figure).length > 0) return EXIT.void;
  return planned.carried ? EXIT.held : EXIT.broken;
}

/** Why the figure is none to plan by. */
function doubts(result: LoadResult, figure: CapacityFigure): string[] {
  return [
    ...(figure.confirmed ? [] : [`the capacity was not confirmed (${figure.unconfirmed}): so is the plan`]),
    ...(result.conformant
      ? []
      : [
          `the answers were wrong under load (${result.findings.map(({ id }) => id).join(', ')}): so is the plan`,
        ]),
  ];
}

/** Two clients that share a quota get no more together than one alone; each with its own get twice as much. */
const SHARED = 1.3;

function measuredBy(result: LoadResult, figure: CapacityFigure, replicas: number): Measured {
  const quota = figure.limitedBy === 'quota';
  const all = figure.perServer ?? figure;
  const server = !quota
    ? 'capacity'
    : all === figure || all.limitedBy === 'none-found'
      ? 'at-least'
      : all.limitedBy !== 'quota'
        ? 'capacity'
        : all.requestsPerSecond < SHARED * figure.requestsPerSecond
          ? 'quota'
          : 'at-least';
  const steps = all.steps.filter((step) => !step.void && step.p50Ms > 0);
  const quiet = [...steps].sort((a, b) => a.offered - b.offered)[0];
  const busy = steps.flatMap((step) => step.saturatedAt ?? []).sort((a, b) => b - a)[0];
  const saturation = Math.max(busy ?? 0, all.requestsPerSecond);
  const { limit, windowSeconds } = figure.quota ?? {};
  return {
    perSecond: all.interval[0],
    limitedBy: all.limitedBy,
    server,
    saturation,
    workers: Math.max(1, Math.round((saturation * (quiet?.p50Ms ?? 0)) / 1000)),
    ...(quota && server !== 'quota'
      ? {
          clientQuota: {
            perSecond: figure.interval[0],
            ...(limit === undefined || windowSeconds === undefined ? {} : { limit, windowSeconds }),
          },
        }
      : {}),
    pageSize: result.pageSize,
    p99Ms: figure.slo.p99Ms,
    replicas,
  };
}

/** What a token call takes, in pages that nothing waits for. */
async function tokenPriceOf(file: string, figure: CapacityFigure): Promise<number> {
  const { tables } = await readResult(file, 'token');
  const tokenMs = median((tables?.['time'] ?? []).map((row) => Number(row['p50Ms'])));
  const pageMs = [...figure.steps].sort((a, b) => a.offered - b.offered)[0]?.p50Ms ?? NaN;
  if (!(tokenMs > 0) || !(pageMs > 0)) throw new UsageError(`${file}: holds no latencies of token calls`);
  return tokenMs / pageMs;
}

async function readResult(file: string, scenario: string): Promise<LoadResult> {
  try {
    const result = JSON.parse(await readFile(file, 'utf8')) as LoadResult;
    if (result?.scenario !== scenario) throw new Error();
    return result;
  } catch {
    throw new UsageError(`${file}: no result of \`npm run load -- ${scenario}\``);
  }
}
