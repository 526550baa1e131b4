/** `npm run load -- plan`: from a measured capacity to requests, utilisation and replicas. */
import { readFile } from 'node:fs/promises';
import { plan } from '../estimate/plan.ts';
import { EXIT, type LoadResult } from '../result.ts';
import { UsageError } from '../../fixtures/errors.ts';

export interface PlanFlags {
  readonly from: string;
  readonly tenants: number;
  readonly poll: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetime: number;
  readonly utilisation: number;
  readonly peakFactor: number;
  readonly json?: boolean;
}

/** Prints the plan. 0: one server carries it, 1: it needs more or the quota is too small, 3: the capacity is none, or was not confirmed. Throws UsageError. */
export async function planCommand(flags: PlanFlags): Promise<number> {
  const result = await readFile(flags.from, 'utf8').then(
    (text) => JSON.parse(text) as LoadResult,
    () => {
      throw new UsageError(`${flags.from}: no result of \`npm run load -- capacity\``);
    },
  );
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
  const planned = plan({
    capacity: figure.requestsPerSecond,
    capacityLow: figure.interval[0],
    limitedBy: figure.limitedBy,
    measuredPageSize: result.pageSize,
    tenants: flags.tenants,
    pollSeconds: flags.poll,
    screeningsPerDay: flags.screeningsPerDay,
    pageSize: flags.pageSize,
    tokenLifetimeSeconds: flags.tokenLifetime,
    targetUtilisation: flags.utilisation,
    peakFactor: flags.peakFactor,
  });
  console.log(
    flags.json
      ? JSON.stringify(planned, null, 2)
      : [...planned.steps, `what becomes the limit first: ${planned.limitedFirstBy}`].join('\n'),
  );
  if (!figure.confirmed) {
    console.error(`the capacity was not confirmed (${figure.unconfirmed}): so is the plan`);
    return EXIT.void;
  }
  return planned.utilisation <= 1 ? EXIT.held : EXIT.broken;
}
