/** Tests a rule in a pairwise covering array: what holds for the baseline request may fail in combinations. */
import { sayRequest, type RequestOut } from '../../client/exchange.ts';
import { readToken } from '../../client/token.ts';
import type { NewFinding } from '../state/ledger.ts';
import { SOME_WINDOW } from '../../client/page.ts';
import { refusedWith, sayRefusal } from '../../checks/errors.ts';
import { sayMismatch, type Judge } from '../../checks/mismatch.ts';
import { formatInstant, isMovable, sameInstant } from '../../data/instant.ts';
import type { OracleItem } from '../../data/oracle.ts';
import { PreconditionFailed, unlessUntested } from '../../errors.ts';
import type { RequirementId } from '../../requirements.ts';
import { FACTORS, requestWith } from '../combinations/factors.ts';
import type { CombinedClient, Baseline, NarrowWindow } from '../combinations/factors.ts';
import { dialectsOf, levelsOn, toDialect, withLevels } from '../combinations/dialects.ts';
import { pairwise, avoidExpensiveLevel, seedFor } from '../state/covering-array.ts';
import type { Factors, Combination } from '../state/covering-array.ts';
import type { Kit } from '../kit.ts';
import type { Check } from '../check.ts';
import { mapConcurrently } from '../../client/concurrency.ts';
import { isSuspicious, UNKNOWN_TENANT, readable } from './raw-request.ts';
import { densestSliceOf, sampleDataOf, WIDE_WINDOWS, windowOf } from '../walk/survey.ts';

/** The halves of a run in which a rule is tested. */
export const MOMENTS = ['early in the run', 'late in the run'] as const;
type Moment = (typeof MOMENTS)[number];

export interface Case {
  /** The requirement of this case, if the rule has several. */
  readonly id?: RequirementId;
  /** Changes a valid request, in its combination, to the one that is judged. */
  readonly alter: (request: RequestOut, baseline: Baseline) => RequestOut | Promise<RequestOut>;
  readonly judge: Judge;
  /** The change in its usual spelling: an answer to it that is wrong too breaks another requirement. */
  readonly usual?: Case['alter'];
  /** What makes it invalid, for reports. */
  readonly value?: string;
}

export interface Rule {
  readonly id: RequirementId;
  /** Further requirements that count as tested. */
  readonly alsoIds?: readonly RequirementId[];
  readonly name: string;
  readonly cases: (kit: Kit) => readonly Case[] | Promise<readonly Case[]>;
  /** The number of first cases that are tested in every combination; each of the others is tested in one. Default 1. */
  readonly everywhere?: number;
  /** The number of first cases that alternate: in each combination one of them replaces a case of `everywhere`. */
  readonly alike?: number;
  /** A case that fails if all others do: it is reported instead of another one. */
  readonly simplest?: (kit: Kit) => Case;
  /** First sends the same request with a token: a cached answer must not be served to other clients. */
  readonly servedBefore?: boolean;
  /** Only in the second half of the run, because it may trigger a guard. */
  readonly isLate?: boolean;
  /** The factor that the rule's own change replaces. */
  readonly inPlaceOf?: string;
  /** Factors that do not apply to its request. */
  readonly without?: readonly string[];
  /** The topic under which the answers are observed. */
  readonly topic?: string;
}

/** The part of a rule that decides in which combinations it is tested. */
export type RuleScope = Pick<Rule, 'name' | 'everywhere' | 'alike' | 'inPlaceOf' | 'without' | 'isLate'>;

/** A combination of the covering array, and the request without the rule's own change. */
export interface CombinedRequest {
  readonly combination: Combination;
  readonly plain: RequestOut;
  readonly baseline: Baseline;
  /** Puts any request in the dialect of the combination. */
  readonly toDialect: (request: RequestOut) => RequestOut;
}

const [[WIDE_FROM, WIDE_TO]] = WIDE_WINDOWS;
const ITEMS_OF_NARROW = 3;

/** Some screenings, and the instant of the next one if possible, as the exclusive end of the window. */
function narrowWindow(items: readonly OracleItem[]): NarrowWindow {
  const id = items[0]!.id;
  const end = items.find(
    ({ at }, index) => index >= ITEMS_OF_NARROW && !sameInstant(at, items[index - 1]!.at),
  );
  return end
    ? { from: formatInstant(items[0]!.at), to: formatInstant(end.at), id }
    : { ...windowOf(items.slice(0, ITEMS_OF_NARROW)), id };
}

/** Neighbours among the second tenant's screenings: the first ones if there is no dataset. */
async function itemsOfSecondTenant(kit: Kit): Promise<readonly OracleItem[]> {
  const client = 'secondTenant';
  const known = await kit.oracle(client);
  if (!known.authoritative) await kit.ask({ from: WIDE_FROM, to: WIDE_TO, pageSize: 50 }, { client });
  const items = known.items.filter(({ at }) => isMovable(at));
  return items.length > 0 ? densestSliceOf(kit, items.slice(0, 500)) : [];
}

/** The baseline request's data; each half of the run has its own tokens. */
const baselineOf = (kit: Kit, moment: Moment): Promise<Baseline> =>
  kit.once(`baseline ${moment}`, async () => {
    const sample = await unlessUntested(sampleDataOf(kit));
    const tenants: Partial<Record<CombinedClient, string>> = { primary: await kit.tenantOf() };
    if (kit.target.clients.secondTenant) tenants.secondTenant = await kit.tenantOf('secondTenant');
    const tokens: Partial<Record<CombinedClient, string>> = {};
    for (const asker of Object.keys(tenants) as CombinedClient[]) {
      // The first token is older than this one.
      await kit.token(asker);
      const text = readToken(await kit.client.mint(asker))?.text;
      if (text) tokens[asker] = text;
    }
    const { baseUrl } = kit.target;
    const primary = sample ? narrowWindow(sample.densestSlice) : { ...SOME_WINDOW, id: 1n };
    const second = tenants.secondTenant ? await itemsOfSecondTenant(kit) : [];
    const secondTenant = second.length > 0 ? narrowWindow(second) : primary;
    const notOnboarded = await unlessUntested(kit.tenantOf('notOnboarded'));
    const spellings = [...Object.values(tenants), UNKNOWN_TENANT, ...(notOnboarded ? [notOnboarded] : [])];
    kit.baseline = {
      baseUrl,
      tenants,
      spellings,
      tokens,
      narrow: { primary, secondTenant },
      nowMs: Date.now(),
    };
    return kit.baseline;
  });

/** All levels that apply to a rule: the full coverage to aim for. */
async function applicableFactors(
  kit: Kit,
  { inPlaceOf, without = [], isLate = false }: RuleScope,
): Promise<Factors> {
  const others = [inPlaceOf, ...without, ...(isLate ? ['moment'] : [])];
  return levelsOn(
    kit.client,
    FACTORS.filter(({ name }) => !others.includes(name)),
  );
}

/** The levels that the target supports. */
async function factorsOf(kit: Kit, applicable: Factors): Promise<Factors> {
  const otherCase = await otherCaseIsServed(kit);
  const isThere = (level: string): boolean =>
    !(level === 'as the second tenant' && !kit.target.clients.secondTenant) &&
    !(level === OTHER_CASE && !otherCase);
  return Object.fromEntries(
    Object.entries(applicable).map(([name, levels]) => [name, levels.filter(isThere)]),
  );
}

const OTHER_CASE = 'a path in another case';

/** Whether the tenant in the path may be written in another case: "must equal" may compare text or UUIDs. */
const otherCaseIsServed = (kit: Kit): Promise<boolean> =>
  kit.once(OTHER_CASE, async () => {
    const baseline = await baselineOf(kit, MOMENTS[0]);
    const plain = plainRequest(kit, baseline, {});
    const { status } = await kit.send({ ...levelOf('path', OTHER_CASE)(plain, baseline), offPath: true });
    kit.ledger.observe('path-in-another-case', String(status));
    return status === 200;
  });

export const levelOf = (
  name: string,
  level: string,
): ((request: RequestOut, baseline: Baseline) => RequestOut) =>
  FACTORS.find((combination) => combination.name === name)!.levels[level]!;

/** The valid request of a combination, without the rule's own change. */
const plainRequest = (kit: Kit, baseline: Baseline, combination: Combination): RequestOut =>
  withLevels(FACTORS, combination, kit.requestTo(baseline.baseUrl, { kind: 'none' }), baseline);

/** Nothing else is in flight during these requests. */
const EXCLUSIVE = 'sent exclusively';
const CONCURRENT = 'sent concurrently';

/** The combination itself was not answered 200, so it proves nothing about the rule. */
const NOT_SERVED = Symbol('not served');

/** The case, by its index, that is tested in a combination. */
interface Assignment {
  readonly combination: Combination;
  readonly index: number;
}

/** The covering array of a rule, in which its first cases alternate; then each other case in one of the combinations. */
async function assignmentsOf(
  kit: Kit,
  rule: RuleScope,
  applicable: Factors,
  caseCount: number,
): Promise<Assignment[]> {
  const everywhere = Math.max(1, Math.min(caseCount, rule.everywhere ?? 1));
  const alike = Math.min(caseCount, rule.alike ?? everywhere);
  const combinations = await kit.once(`cover of ${rule.name}`, async () => {
    const names = Array.from({ length: everywhere }, (_, index) => String(index));
    const factors = { ...(await factorsOf(kit, applicable)), ...(everywhere > 1 ? { case: names } : {}) };
    const all = pairwise(factors, seedFor(kit.options.seed, rule.name));
    return avoidExpensiveLevel(all, 'concurrency', EXCLUSIVE, CONCURRENT);
  });
  const turns = Array<number>(everywhere).fill(0);
  const inTurn = combinations.map((combination): Assignment => {
    const first = Number(combination['case'] ?? 0);
    const alternating = Math.max(1, Math.ceil((alike - first) / everywhere));
    return { combination, index: first + everywhere * (turns[first]!++ % alternating) };
  });
  const taken = new Set(inTurn.map(({ index }) => index));
  const others = Array.from({ length: caseCount }, (_, index) => index).filter((index) => !taken.has(index));
  return [
    ...inTurn,
    ...others.map((index) => ({ combination: combinations[index % combinations.length]!, index })),
  ];
}

/**
 * Runs `ask` in each combination of a rule, exclusive ones first. Throws PreconditionFailed after all of them if
 * some combinations were not served.
 */
export async function inEveryCombination(
  kit: Kit,
  rule: RuleScope,
  moment: Moment,
  caseCount: number,
  ask: (request: CombinedRequest, index: number) => Promise<void | typeof NOT_SERVED>,
): Promise<void> {
  const baseline = await baselineOf(kit, moment);
  const applicable = await applicableFactors(kit, rule);
  const assignments = (await assignmentsOf(kit, rule, applicable, caseCount)).filter(
    ({ combination }) => (combination['moment'] ?? moment) === moment,
  );
  const notServed: RequestOut[] = [];
  const runAssignment = async ({ combination, index }: Assignment): Promise<void> => {
    const plain = plainRequest(kit, baseline, combination);
    const isServed =
      (await ask({ combination, baseline, plain, toDialect: toDialect(combination) }, index)) !== NOT_SERVED;
    if (isServed) for (const dialect of dialectsOf(combination)) kit.ledger.observe('dialects', dialect);
    kit.ledger.noteCombination(rule.name, applicable, isServed ? combination : {});
    if (!isServed) notServed.push(plain);
  };
  const exclusive = assignments.filter(({ combination }) => combination['concurrency'] === EXCLUSIVE);
  for (const assignment of exclusive) await runAssignment(assignment);
  await mapConcurrently(
    assignments.filter((assignment) => !exclusive.includes(assignment)),
    runAssignment,
  );
  const [first] = notServed;
  if (first)
    throw new PreconditionFailed(
      `${notServed.length} of its ${assignments.length} combinations were not answered 200 even without the rule's own change: ${sayRequest(first)}`,
      '4.2-success',
    );
}

/** Tests a rule in one half of the run. */
async function testRule(kit: Kit, rule: Rule, moment: Moment): Promise<void> {
  const cases = await rule.cases(kit);
  let isRepeated = moment !== MOMENTS[0] && !rule.isLate;
  await inEveryCombination(kit, rule, moment, cases.length, async (drawn, index) => {
    const isExclusive = drawn.combination['concurrency'] === EXCLUSIVE;
    const testCase = async (
      { id = rule.id, alter, judge, value }: Case,
      combined: CombinedRequest,
    ): Promise<NewFinding | undefined> => {
      const request = await applyCase(rule, combined, alter);
      const exchange = readable(await kit.send(request, { isExclusive }));
      if (rule.topic) kit.ledger.observe(rule.topic, sayRefusal(exchange, kit.target.errorCodePointer));
      const mismatch = judge(exchange);
      kit.onCheck?.(id, sayRequest(request), mismatch && sayMismatch(mismatch));
      if (!mismatch) return undefined;
      const varied = Object.keys(await applicableFactors(kit, rule));
      // A wrongly served request and a wrong rejection are different faults.
      return { id, cause: `${rule.name}, ${exchange.status}`, mismatch, value, exchange, judge, varied };
    };
    const tested = cases[index]!;
    const isUnserved = async ({ plain }: CombinedRequest): Promise<boolean> =>
      (await kit.send(plain)).status !== 200;
    const note = async (failed: NewFinding | undefined, combined: CombinedRequest): Promise<void> => {
      const { id = rule.id, judge, usual } = tested;
      if (failed && usual && judge(await kit.send(await applyCase(rule, combined, usual)))) return;
      kit.ledger.check(id);
      if (failed) kit.fail((rule.simplest && (await testCase(rule.simplest(kit), combined))) ?? failed);
    };
    if (rule.servedBefore) await kit.send(drawn.plain, { isExclusive });
    let failed = await testCase(tested, drawn);
    // A server may remember a request that it has checked, and not what the check found.
    if (!failed && !isRepeated) {
      isRepeated = true;
      failed = await testCase(tested, drawn);
    }
    if (!failed || !(await isUnserved(drawn))) return note(failed, drawn);
    // A combination that is never served breaks another requirement; the usual one may still show this one broken.
    const usually = { ...drawn, combination: {}, plain: plainRequest(kit, drawn.baseline, {}) };
    const found = await testCase(tested, usually);
    if (found && !(await isUnserved(usually))) await note(found, usually);
    return NOT_SERVED;
  });
}

/** The rule's own change replaces a factor if it has one; later factors are applied to the result. */
async function applyCase(
  { inPlaceOf }: Rule,
  { combination, plain, baseline }: CombinedRequest,
  alter: Case['alter'],
): Promise<RequestOut> {
  const altered = await alter(plain, baseline);
  const index = FACTORS.findIndex(({ name }) => name === inPlaceOf);
  return index < 0 ? altered : withLevels(FACTORS.slice(index + 1), combination, altered, baseline);
}

/** The title of a check in each half of the run. */
export const titleIn = (moment: Moment, title: string): string =>
  moment === MOMENTS[0] ? title : `${title}, ${moment}`;

/** A rule as two checks, one in the order of its section and one at the end of the run; a late rule has only the second. */
export function checksOf(rule: Rule): readonly Check[] {
  const { id, alsoIds = [], name, isLate = false } = rule;
  return MOMENTS.slice(isLate ? 1 : 0).map((moment) => ({
    ids: [id, ...alsoIds],
    title: isLate ? name : titleIn(moment, name),
    needs: 'page',
    access: moment === MOMENTS[0] ? 'reads' : 'reads late',
    isSupplement: !isLate && moment !== MOMENTS[0],
    run: (kit) => testRule(kit, rule, moment),
  }));
}

/** A rejection with 400: parameters as on the wire, undefined for a missing one. */
export const refusal =
  (parameters: Readonly<Record<string, string | undefined>>, ...codes: readonly string[]) =>
  (kit: Kit): Case => ({
    value: Object.entries(parameters)
      .map(([name, value]) => (value === undefined ? `no ${name}` : `${name}=${value}`))
      .join(' '),
    alter: (request) => ({
      ...Object.entries(parameters).reduce(
        (changed, [name, value]) => requestWith(changed, name, value),
        request,
      ),
      suspicious: Object.values(parameters).some((value) => isSuspicious(value ?? '')),
    }),
    judge: refusedWith(kit, ...codes),
  });

/** A value that may be rejected with 400 or accepted. */
export const refusalOr200 =
  (...refused: Parameters<typeof refusal>) =>
  (kit: Kit): Case => {
    const { alter, judge } = refusal(...refused)(kit);
    return {
      alter,
      judge: (exchange) => {
        const mismatch = exchange.status === 200 ? undefined : judge(exchange);
        return mismatch && { ...mismatch, expected: `200 or ${mismatch.expected}` };
      },
    };
  };

export const refusals =
  (all: readonly ((kit: Kit) => Case)[]) =>
  (kit: Kit): readonly Case[] =>
    all.map((create) => create(kit));
