/** Screenings of a tenant at one time, and the changes between two times (1-read-only, 4.2-repeatable). */
import { endedAtMs, type Exchange } from '../../client/exchange.ts';
import { differingMembers, member, parseOnce } from '../../client/json.ts';
import { countOf, endsEmpty, isOrdered, orderedItems, pageOf, shows } from '../../client/page.ts';
import type { OrderedItem, PageQuery } from '../../client/page.ts';
import type { Screening } from '../../data/dataset.ts';
import { compareKeys } from '../../data/oracle.ts';
import { differs, type MismatchWithEvidence } from '../../checks/mismatch.ts';
import { sayItem } from '../../checks/page.ts';
import { prefixMismatch } from '../../checks/selection.ts';
import type { ClientName } from '../../target/target.ts';
import type { Kit } from '../kit.ts';
import { randomIntegers, seedFor, shuffled } from '../state/covering-array.ts';
import { LONGEST_LAG_MS, stillThereLater, untilReplicasShow } from '../state/context.ts';
import { walk } from './walk.ts';

interface Snapshot {
  readonly items: readonly OrderedItem[];
  /** No further items follow in the window. */
  readonly complete: boolean;
  readonly exchange: Exchange;
}

const PAGES = 4;

/** The first thousands of items in a window. */
export async function takeSnapshot(
  kit: Kit,
  query: PageQuery,
  client: ClientName = 'primary',
): Promise<Snapshot> {
  const walked = await walk(kit, { ...query, pageSize: kit.knowledge.pageSize }, { client, maxPages: PAGES });
  const exchange =
    walked.exchanges.find((page) => pageOf(page).items?.some(isOrdered)) ?? walked.exchanges[0]!;
  return { items: walked.items, complete: walked.end === 'complete', exchange };
}

/** Whether another value of this member counts as a change of the screening. */
type Counts = (screening: OrderedItem, name: string) => boolean;

const every = (): boolean => true;

export const isItsTime: Counts = (_, name) => name === 'testTime';

/**
 * Also members with the value that the dataset has. Others may change by themselves: the signature of an address, for
 * example, may be as old as its second (2.3-object-stable).
 */
export function isAsRecorded(dataset: readonly Screening[]): Counts {
  const recorded = new Map(dataset.map(({ id, json }) => [id, json]));
  return (screening, name) => {
    const line = parseOnce(recorded.get(screening.id) ?? '{}');
    const isHeld = member(line, name) !== undefined && !differingMembers(line, screening.json).includes(name);
    return isHeld || isItsTime(screening, name);
  };
}

/** A screening that disappeared, changed, or is new; with `isOurs`, only a new one of the kit's own counts. */
export function whatChanged(
  before: Snapshot,
  after: Snapshot,
  counts: Counts = every,
  isOurs: (item: OrderedItem) => boolean = every,
): MismatchWithEvidence | undefined {
  const told = (expected: string, received: string): MismatchWithEvidence => ({
    ...differs(expected, received),
    exchange: after.exchange,
  });
  const now = new Map(after.items.map((item) => [item.id, item]));
  for (const item of before.items.filter((one) => reaches(after, one))) {
    const same = now.get(item.id);
    if (!same)
      return told(`${sayItem(item)} as before the writing methods`, `${after.items.length} items without it`);
    if (differingMembers(same.json, item.json).some((name) => counts(item, name)))
      return told(`${sayItem(item)} as before the writing methods`, `${sayItem(same)} with other values`);
  }
  const held = new Set(before.items.map(({ id }) => id));
  const made = after.items.find((item) => !held.has(item.id) && reaches(before, item) && isOurs(item));
  return made && told('no screening that was not there before the writing methods', sayItem(made));
}

/** Whether each period writes. The order is random: arrivals match it by chance in at most 1 of 18,564 orders. */
const PERIODS = [...Array<boolean>(6).fill(true), ...Array<boolean>(12).fill(false)];

/** What also changes by itself: the methods are at fault if all periods that write, and no others, show a change. */
export async function changedByWriting(
  kit: Kit,
  query: PageQuery,
  first: Snapshot,
  name: string,
  write: () => Promise<void>,
): Promise<MismatchWithEvidence | undefined> {
  let before = await takeSnapshot(kit, query);
  // A tenant that has been emptied cannot change again.
  if (before.items.length === 0) return whatChanged(first, before);
  let periodMs = 0;
  let seen: MismatchWithEvidence | undefined;
  for (const writes of [true, ...shuffled(PERIODS, randomIntegers(seedFor(kit.options.seed, name)))]) {
    const began = kit.clock.now();
    if (writes) await write();
    else await kit.clock.sleep(periodMs);
    periodMs = Math.max(periodMs, kit.clock.now() - began);
    const after = await takeSnapshot(kit, query);
    const changed = whatChanged(before, after);
    if ((changed !== undefined) !== writes) return undefined;
    seen ??= changed;
    before = after;
  }
  return seen;
}

/** Whether a snapshot would contain the item if it existed. */
const reaches = ({ items, complete }: Snapshot, item: OrderedItem): boolean =>
  complete || (items.length > 0 && compareKeys(item, items.at(-1)!) <= 0);

/**
 * The mismatch between two answers to the same request (4.2-repeatable). Without a dataset, screenings that only one
 * answer lacks may have been deleted, and a lagging replica may have lacked new ones at first: then only the others are
 * compared.
 */
export async function repeatMismatch(
  kit: Kit,
  first: Exchange,
  second: Exchange,
): Promise<MismatchWithEvidence | undefined> {
  // An answer other than 200 is reported by the request itself.
  if (second.status !== 200) return undefined;
  const { oracleOf } = kit.knowledge;
  const was = countOf(first);
  const mismatch =
    was > 0 && endsEmpty(second)
      ? { ...differs(`${was} items again`, 'no items'), exchange: second }
      : prefixMismatch(first, second, oracleOf);
  if (!mismatch) return undefined;
  const known = await kit.oracle();
  // A replica that deletes later shows again what the first answer lacks.
  const back = lostFrom(second, first).filter(({ id }) => (known.get(id)?.firstSeen ?? Infinity) < first.seq);
  const mayBeLate = ({ id }: OrderedItem): boolean =>
    !known.authoritative && first.startedAtMs < known.get(id)!.firstSeenMs + kit.pollingMs(LONGEST_LAG_MS);
  const lost = [...lostFrom(first, second), ...back.filter((item) => !mayBeLate(item))];
  const late = back.filter(mayBeLate);
  if (late.length > 0 && !(await isShownLater(kit, first, late))) return mismatch;
  if (lost.length > 0 && (await stillThereLater(kit, second, lost)).length > 0) return mismatch;
  const ids = [...lost, ...late].map(({ id }) => id);
  return ids.length === 0 ? mismatch : prefixMismatch(first, second, oracleOf, new Set(ids));
}

/** Whether the same request returns the items once every replica must show them; a failed request decides nothing. */
async function isShownLater(kit: Kit, first: Exchange, items: readonly OrderedItem[]): Promise<boolean> {
  const isShown = async (): Promise<boolean> => {
    const page = await kit.client.send(first.request, { unjudged: true });
    return page.status !== 200 || items.every((item) => shows(page, item));
  };
  return (await isShown()) || ((await untilReplicasShow(kit, endedAtMs(first))) && (await isShown()));
}

/** The items of one answer that the other one lacks, as far as it goes. */
function lostFrom(first: Exchange, second: Exchange): OrderedItem[] {
  const last = orderedItems(second).at(-1);
  const end = pageOf(second).nextUrl === undefined ? undefined : last;
  return orderedItems(first).filter((item) => (!end || compareKeys(item, end) <= 0) && !shows(second, item));
}
