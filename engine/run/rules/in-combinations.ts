/** Tests a rule in a pairwise covering array: what holds for the baseline request may fail in combinations. */
import { sayRequest, type RequestOut } from '../../client/exchange.ts';
import { readToken } from '../../client/token.ts';
import type { NewFinding } from '../state/ledger.ts';
import { SOME_WINDOW } from '../../client/page.ts';
import { sayRefusal } from '../../checks/errors.ts';
import type { Judge } from '../../checks/mismatch.ts';
import { refusedWith } from '../../checks/refusal.ts';
import { formatInstant, sameInstant } from '../../data/instant.ts';
import type { OracleItem } from '../../data/oracle.ts';
import { PreconditionFailed, Untested } from '../../errors.ts';
import type { RequirementId } from '../../requirements.ts';
import {
  FACTORS,
  withParameter,
  type Asker,
  type Baseline,
  type NarrowWindow,
} from '../combinations/factors.ts';
import { dialectsOf, PROTOCOL, spoken } from '../combinations/dialects.ts';
import { pairwise, sparing, streamOf, type Factors, type Row } from '../state/cover.ts';
import type { Kit } from '../kit.ts';
import type { Check, Precondition } from '../check.ts';
import { mapConcurrently } from '../concurrent.ts';
import { isClientError, isSuspicious, NOBODY, readable } from './raw-request.ts';
import { densestSliceOf, sampleDataOf, WIDE_WINDOWS, windowOf } from '../walk/survey.ts';

/** The halves of a run in which a rule is tested. */
export const MOMENTS = ['early in the run', 'late in the run'] as const;
export type Moment = (typeof MOMENTS)[number];

/** One case of a rule. */
export interface Way {
  /** The requirement of this case, if the rule has several. */
  readonly id?: RequirementId;
  /** Changes a valid request, in its combination, to the one that is judged. */
  readonly alter: (request: RequestOut, baseline: Baseline) => RequestOut | Promise<RequestOut>;
  readonly judge: Judge;
}

export interface Rule {
  readonly id: RequirementId;
  /** Further requirements that count as tested. */
  readonly alsoIds?: readonly RequirementId[];
  readonly name: string;
  readonly precondition?: Precondition;
  readonly ways: (kit: Kit) => readonly Way[] | Promise<readonly Way[]>;
  /** The number of first cases that are tested in every combination; each of the others is tested in one. Default 1. */
  readonly telling?: number;
  /** A case that fails if all others do: it is reported instead of another one. */
  readonly simplest?: (kit: Kit) => Way;
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
  /** Its combinations are never served: the plain request, which would show that, is not sent. */
  readonly unserved?: boolean;
}

/** The part of a rule that decides in which combinations it is tested. */
export type Place = Pick<Rule, 'name' | 'telling' | 'inPlaceOf' | 'without' | 'isLate'>;

/** A combination of the covering array, and the request without the rule's own change. */
export interface Occasion {
  readonly row: Row;
  readonly plain: RequestOut;
  readonly baseline: Baseline;
  /** Puts any request in the dialect of the combination. */
  readonly speak: (request: RequestOut) => RequestOut;
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
async function someOfSecond(kit: Kit): Promise<readonly OracleItem[]> {
  const client = 'secondTenant';
  const known = await kit.oracle(client);
  if (!known.authoritative) await kit.ask({ from: WIDE_FROM, to: WIDE_TO, pageSize: 50 }, { client });
  return known.items.length > 0 ? densestSliceOf(kit, known.items.slice(0, 500)) : [];
}

async function tenantOfNotOnboarded(kit: Kit): Promise<readonly string[]> {
  if (!kit.target.clients.notOnboarded) return [];
  return kit.tenantOf('notOnboarded').then(
    (tenantId) => [tenantId],
    (error: unknown) => {
      if (error instanceof Untested) return [];
      throw error;
    },
  );
}

/** The baseline request's data; each half of the run has its own tokens. */
const baselineOf = (kit: Kit, moment: Moment): Promise<Baseline> =>
  kit.once(`baseline ${moment}`, async () => {
    const sample = await sampleDataOf(kit).catch((error: unknown) => {
      if (error instanceof Untested) return undefined;
      throw error;
    });
    const tenants: Partial<Record<Asker, string>> = { primary: await kit.tenantOf() };
    if (kit.target.clients.secondTenant) tenants.secondTenant = await kit.tenantOf('secondTenant');
    const tokens: Partial<Record<Asker, string>> = {};
    for (const asker of Object.keys(tenants) as Asker[]) {
      // The first token is older than this one.
      await kit.token(asker);
      const text = readToken(await kit.client.mint(asker))?.text;
      if (text) tokens[asker] = text;
    }
    const { baseUrl } = kit.target;
    const primary = sample ? narrowWindow(sample.densestSlice) : { ...SOME_WINDOW, id: 1n };
    const second = tenants.secondTenant ? await someOfSecond(kit) : [];
    const secondTenant = second.length > 0 ? narrowWindow(second) : primary;
    const spellings = [...Object.values(tenants), NOBODY, ...(await tenantOfNotOnboarded(kit))];
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

const levelsOf = (name: string): readonly string[] =>
  Object.keys(FACTORS.find((combination) => combination.name === name)!.levels);

/** All levels that apply to a rule: the full coverage to aim for. */
async function roomOf(kit: Kit, { inPlaceOf, without = [], isLate = false }: Place): Promise<Factors> {
  const noProtocol = !(await kit.client.offersHttp2());
  return Object.fromEntries(
    FACTORS.filter(
      ({ name }) =>
        name !== inPlaceOf &&
        !without.includes(name) &&
        !(isLate && name === 'moment') &&
        !(noProtocol && name === PROTOCOL),
    ).map(({ name }) => [name, levelsOf(name)]),
  );
}

/** The levels that the target supports. */
async function factorsOf(kit: Kit, room: Factors): Promise<Factors> {
  const otherCase = await otherCaseIsServed(kit);
  const isThere = (level: string): boolean =>
    !(level === 'as the second tenant' && !kit.target.clients.secondTenant) &&
    !(level === OTHER_CASE && !otherCase);
  return Object.fromEntries(Object.entries(room).map(([name, levels]) => [name, levels.filter(isThere)]));
}

const OTHER_CASE = 'a path in another case';

/** Whether the tenant in the path may be written in another case: "must equal" may compare text or UUIDs. */
const otherCaseIsServed = (kit: Kit): Promise<boolean> =>
  kit.once(OTHER_CASE, async () => {
    const baseline = await baselineOf(kit, MOMENTS[0]);
    const plain = plainRequest(baseline, {}, kit.target.headers);
    const { status } = await kit.send({ ...levelOf('path', OTHER_CASE)(plain, baseline), offPath: true });
    kit.ledger.observe('path-in-another-case', String(status));
    return status === 200;
  });

export const levelOf = (
  name: string,
  level: string,
): ((request: RequestOut, baseline: Baseline) => RequestOut) =>
  FACTORS.find((combination) => combination.name === name)!.levels[level]!;

/** The valid request of a combination, without the rule's own change. Factors that it does not name stay usual. */
function plainRequest(
  baseline: Baseline,
  row: Row,
  headers: Readonly<Record<string, string>> = {},
): RequestOut {
  const blank: RequestOut = {
    channel: 'rest',
    method: 'GET',
    url: baseline.baseUrl,
    headers: { ...headers, accept: 'application/json' },
    authorization: { kind: 'none' },
  };
  return FACTORS.reduce(
    (request, { name, levels }) => (levels[row[name] ?? ''] ?? Object.values(levels)[0]!)(request, baseline),
    blank,
  );
}

/** Nothing else is in flight during these requests. */
const ALONE = 'asked alone';
const BESIDE = 'asked concurrently';

/** The combination itself was not answered 200, so it proves nothing about the rule. */
const NOT_SERVED = Symbol('not served');

/**
 * Runs `ask` in each combination of a rule, exclusive ones first. Throws PreconditionFailed after all of them if
 * some combinations were not served.
 */
export async function inEveryCombination(
  kit: Kit,
  rule: Place,
  moment: Moment,
  ways: number,
  ask: (occasion: Occasion, way: number) => Promise<void | typeof NOT_SERVED>,
): Promise<void> {
  const baseline = await baselineOf(kit, moment);
  const telling = Math.min(ways, rule.telling ?? 1);
  const names = Array.from({ length: telling }, (_, way) => String(way));
  const room = await roomOf(kit, rule);
  const factors = { ...(await factorsOf(kit, room)), ...(telling > 1 ? { way: names } : {}) };
  const rows = await kit.once(`cover of ${rule.name}`, async () =>
    sparing(pairwise(factors, streamOf(kit.options.seed, rule.name)), 'company', ALONE, BESIDE),
  );
  const others = Array.from({ length: Math.max(0, ways - telling) }, (_, index) => telling + index);
  const turns = [
    ...rows.map((row) => ({ row, way: Number(row['way'] ?? 0) })),
    ...others.map((way) => ({ row: rows[way % rows.length]!, way })),
  ].filter(({ row }) => (row['moment'] ?? moment) === moment);
  const notServed: RequestOut[] = [];
  const take = async ({ row, way }: (typeof turns)[number]): Promise<void> => {
    const plain = plainRequest(baseline, row, kit.target.headers);
    const isServed = (await ask({ row, baseline, plain, speak: spoken(row) }, way)) !== NOT_SERVED;
    if (isServed) for (const dialect of dialectsOf(row)) kit.ledger.observe('dialects', dialect);
    kit.ledger.looked(rule.name, room, isServed ? row : {});
    if (!isServed) notServed.push(plain);
  };
  const alone = turns.filter(({ row }) => row['company'] === ALONE);
  for (const turn of alone) await take(turn);
  await mapConcurrently(
    turns.filter((turn) => !alone.includes(turn)),
    take,
  );
  const [first] = notServed;
  if (first)
    throw new PreconditionFailed(
      `${notServed.length} of its ${turns.length} combinations were not served without the rule's own part either: ${sayRequest(first)}`,
      '4.2-success',
    );
}

/** Tests a rule in one half of the run. */
async function askRule(kit: Kit, rule: Rule, moment: Moment): Promise<void> {
  const ways = await rule.ways(kit);
  await inEveryCombination(kit, rule, moment, ways.length, async ({ row, plain, baseline }, way) => {
    const alone = row['company'] === ALONE;
    const put = async ({ id = rule.id, alter, judge }: Way): Promise<NewFinding | undefined> => {
      const request = await altered(rule, row, plain, baseline, alter);
      const exchange = readable(await kit.send(request, { alone }));
      if (rule.topic) kit.ledger.observe(rule.topic, sayRefusal(exchange, kit.target.errorCodePointer));
      const mismatch = judge(exchange);
      const varied = Object.keys(await roomOf(kit, rule));
      // A wrongly served request and a wrong rejection are different faults.
      const cause = `${rule.name}, ${exchange.status}`;
      return mismatch && { id, cause, mismatch, exchange, judge, varied };
    };
    if (rule.servedBefore) await kit.send(plain, { alone });
    const failed = await put(ways[way]!);
    // A combination that is never served breaks another requirement.
    if (failed && !rule.unserved && (await kit.send(plain)).status !== 200) return NOT_SERVED;
    kit.ledger.check(ways[way]!.id ?? rule.id);
    if (failed) kit.fail((rule.simplest && (await put(rule.simplest(kit)))) ?? failed);
  });
}

/** The rule's own change replaces a factor if it has one; later factors are applied to the result. */
async function altered(
  { inPlaceOf }: Rule,
  row: Row,
  plain: RequestOut,
  baseline: Baseline,
  alter: Way['alter'],
): Promise<RequestOut> {
  const place = FACTORS.findIndex(({ name }) => name === inPlaceOf);
  if (place < 0) return alter(plain, baseline);
  return FACTORS.slice(place + 1).reduce(
    (request, { name, levels }) => (levels[row[name] ?? ''] ?? Object.values(levels)[0]!)(request, baseline),
    await alter(plain, baseline),
  );
}

/** The title of a check in each half of the run. */
export const titleIn = (moment: Moment, title: string): string =>
  moment === MOMENTS[0] ? title : `${title}, ${moment}`;

/** A rule as two checks, one in the order of its section and one at the end of the run; a late rule has only the second. */
export function checksOf(rule: Rule): readonly Check[] {
  const { id, alsoIds = [], name, precondition = 'page', isLate = false } = rule;
  return MOMENTS.slice(isLate ? 1 : 0).map((moment) => ({
    ids: [id, ...alsoIds],
    title: isLate ? name : titleIn(moment, name),
    needs: precondition,
    access: moment === MOMENTS[0] ? 'reads' : 'reads late',
    isSupplement: !isLate && moment !== MOMENTS[0],
    run: (kit) => askRule(kit, rule, moment),
  }));
}

/** A rejection with 400: parameters as on the wire, undefined for a missing one. */
export const refusal =
  (parameters: Readonly<Record<string, string | undefined>>, ...codes: readonly string[]) =>
  (kit: Kit): Way => ({
    alter: (request) => ({
      ...Object.entries(parameters).reduce(
        (changed, [name, value]) => withParameter(changed, name, value),
        request,
      ),
      suspicious: Object.values(parameters).some((value) => isSuspicious(value ?? '')),
    }),
    judge: (exchange) =>
      exchange.request.suspicious && isClientError(exchange)
        ? undefined
        : refusedWith(kit.target.errorCodePointer, ...codes)(exchange),
  });

/** A value that may be rejected with 400 or accepted. */
export const refusalOr200 =
  (...refused: Parameters<typeof refusal>) =>
  (kit: Kit): Way => {
    const { alter, judge } = refusal(...refused)(kit);
    return { alter, judge: (exchange) => (exchange.status === 200 ? undefined : judge(exchange)) };
  };

export const refusals =
  (all: readonly ((kit: Kit) => Way)[]) =>
  (kit: Kit): readonly Way[] =>
    all.map((way) => way(kit));
