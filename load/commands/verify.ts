/** `npm run load -- verify WHAT`: prints a table; 0 where the kit keeps what it promises, 1 where not. */
import { EXIT } from '../result.ts';
import { capacityTable, verifyCapacity } from '../verify/capacity.ts';
import { generatorTable, verifyGenerator } from '../verify/generator.ts';
import { verifyLimiters } from '../verify/limiters.ts';
import { CAPACITY_CLASSES, simulationsTable, verifySimulations } from '../verify/simulations.ts';
import { pagingTable, verifyPaging } from '../verify/paging.ts';
import { rateLimitTable, verifyRateLimit } from '../verify/rate-limit.ts';
import { SEEN_WITH_K6, verifySeen } from '../verify/seen.ts';
import { verifyDepths } from '../verify/depths.ts';
import { verifyMoreLimiters } from '../verify/more-limiters.ts';
import { truthTable } from '../verify/truth-table.ts';
import { segmentsTable, verifySegments } from '../verify/segments.ts';
import { tokensTable, verifyTokens } from '../verify/tokens.ts';

export const VERIFICATIONS = [
  ...CAPACITY_CLASSES,
  'limiters',
  'more-limiters',
  'depths',
  ...SEEN_WITH_K6,
  'capacity',
  'rate-limit',
  'paging',
  'generator',
  'segments',
  'tokens',
] as const;
export type Verification = (typeof VERIFICATIONS)[number];

export interface VerifyFlags {
  readonly servers: number;
  readonly limiters: number;
  readonly cleanRuns: number;
  readonly screenings: number;
  readonly parallel: number;
  readonly thoroughness: number;
  readonly seed: number;
}

export async function verifyCommand(
  what: Verification,
  flags: VerifyFlags,
  k6: () => Promise<string>,
  tell: (line: string) => void,
): Promise<number> {
  const virtual: readonly string[] = [...CAPACITY_CLASSES, 'limiters', 'more-limiters', 'depths'];
  const { text, ok } = await table(what, flags, virtual.includes(what) ? '' : await k6(), tell);
  console.log(`\n${text}\n${ok ? 'kept' : 'NOT KEPT'}`);
  return ok ? EXIT.held : EXIT.broken;
}

async function table(what: Verification, flags: VerifyFlags, k6: string, tell: (line: string) => void) {
  switch (what) {
    case 'queues':
    case 'sharing':
    case 'overload':
    case 'quotas':
    case 'refusals':
    case 'errors':
    case 'tails':
    case 'warming':
      return simulationsTable(await verifySimulations(what, flags.servers, flags.seed));
    case 'limiters':
      return rateLimitTable(verifyLimiters(flags.limiters, flags.seed));
    case 'more-limiters':
      return truthTable(verifyMoreLimiters(flags.servers, flags.seed));
    case 'depths':
      return truthTable(verifyDepths(flags.servers, flags.seed));
    case 'connecting':
    case 'connections':
    case 'freezes':
    case 'scope':
      return truthTable(await verifySeen(what, { ...flags, k6, tell }));
    case 'capacity':
      return capacityTable(await verifyCapacity({ ...flags, k6, tell }));
    case 'rate-limit':
      return rateLimitTable(await verifyRateLimit({ ...flags, k6, tell }));
    case 'paging':
      return pagingTable(await verifyPaging({ ...flags, k6, tell }));
    case 'generator':
      return generatorTable(await verifyGenerator(k6, tell));
    case 'segments':
      return segmentsTable(await verifySegments(k6, 120, 15));
    case 'tokens':
      return tokensTable(await verifyTokens(k6, 20, 120));
  }
}
