/** Section 6: compares the captured events of the tenant's queue with what REST returns. */
import { about, test } from '../fixtures/test.ts';
import { eventData, envelopeMismatches } from '../engine/checks/cloud-event.ts';
import { UNLESS, differs, type Mismatch } from '../engine/checks/mismatch.ts';
import { differenceOf } from '../engine/checks/page.ts';
import { isUuid } from '../engine/data/dataset.ts';
import {
  canonical,
  excerpt,
  integerOf,
  isObject,
  member,
  parseJson,
  type Json,
} from '../engine/client/json.ts';
import { pageOf } from '../engine/client/page.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  isInside,
  isMovable,
  parseInstant,
} from '../engine/data/instant.ts';
import type { Instant, Window } from '../engine/data/instant.ts';
import { SupplyUnusable, Untested } from '../engine/errors.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { Kit } from '../engine/run/kit.ts';
import { windowOf } from '../engine/run/walk/survey.ts';
import { walk, type Walk } from '../engine/run/walk/walk.ts';

const WALK_PAGES = 100;

interface Captured {
  readonly line: number;
  readonly type: string;
  readonly envelope: Json | undefined;
  readonly data: Json | undefined;
  readonly screeningId: bigint | undefined;
  readonly at: Instant | undefined;
}

/** Read once, since a capture may be long. */
const captured = (kit: Kit): Promise<readonly Captured[]> =>
  kit.once('captured events', async () => readEvents(kit));

/** The events of the capture; a line may hold a batch (CloudEvents JSON format, section 4). */
function readEvents(kit: Kit): readonly Captured[] {
  const { events } = kit.target;
  if (!events) throw new Untested("supply events: a capture of primary's queue, one JSON CloudEvent a line");
  if (events.length === 0) throw new SupplyUnusable('the events file is empty; capture some events first');
  if (events.every((text) => parseJson(text) === undefined))
    throw new SupplyUnusable('no line of the events file is JSON; supply one JSON CloudEvent a line');
  // The last one alone: what captured it was stopped while it wrote.
  if (events.findIndex((text) => parseJson(text) === undefined) === events.length - 1)
    throw new SupplyUnusable('the last line of the events file is cut off; capture again, or remove it');
  return events.flatMap((text, index) => {
    const json = parseJson(text);
    return (Array.isArray(json) ? json : [json]).map((envelope) => {
      const data = eventData(envelope);
      const at = parseInstant(String(member(data, 'testTime') ?? ''));
      const type = String(member(envelope, 'type') ?? '');
      return { line: index + 1, type, envelope, data, at, screeningId: integerOf(member(data, 'id')) };
    });
  });
}

function fail(kit: Kit, id: RequirementId, { expected, received }: Mismatch, line?: number): void {
  const where = line === undefined ? '' : ` on line ${line}`;
  kit.fail({ id, cause: 'events', mismatch: differs(expected, `${received}${where}`) });
}

interface Rest {
  readonly byId: ReadonlyMap<bigint, Json>;
  /** The ids that a double rounds, by the rounded id. */
  readonly byDouble: ReadonlyMap<bigint, readonly bigint[]>;
  /** Why the traversal did not reach the end of the window; undefined if it did. */
  readonly brokenOff: string | undefined;
}

function whyBrokenOff({ end, why, exchanges }: Walk): string | undefined {
  if (end === 'complete') return undefined;
  const cut =
    exchanges.length < WALK_PAGES
      ? 'other walks did not come to an end'
      : `it has more than ${WALK_PAGES} pages; name a smaller window`;
  return `the window could not be walked to its end: ${why ?? cut}`;
}

/** The screenings that REST returns for a window. */
const restOf = ({ from, to }: Window, kit: Kit): Promise<Rest> => {
  const query = { from: formatInstant(from), to: formatInstant(to), pageSize: kit.knowledge.pageSize };
  return kit.once(`events of ${query.from} to ${query.to}`, async () => {
    const walked = await walk(kit, query, { maxPages: WALK_PAGES });
    const items = walked.exchanges.flatMap((exchange) => pageOf(exchange).items ?? []);
    const byId = new Map(items.flatMap((item) => (item.id === undefined ? [] : [[item.id, item.json]])));
    const byDouble = new Map<bigint, bigint[]>();
    for (const id of byId.keys()) {
      const double = BigInt(Number(id));
      if (double !== id) byDouble.set(double, [...(byDouble.get(double) ?? []), id]);
    }
    return { byId, byDouble, brokenOff: whyBrokenOff(walked) };
  });
};

/** The range of the captured screenings, or the window of the target file if it contains them all. */
function spanOf(events: readonly Captured[], window: Window | undefined): Window | undefined {
  const times = events.flatMap(({ at }) => (at && isMovable(at) ? at : [])).sort(compareInstants);
  const [from, last] = [times[0], times.at(-1)];
  if (!from || !last) return window;
  const within = window && isInside(from, window) && isInside(last, window);
  return within ? window : { from, to: instant(windowOf([{ at: last }]).to) };
}

const contentOf = ({ type, data }: Captured): string => canonical([type, data ?? null]);

/** The same event may be delivered repeatedly, but two different events must not share source and id. */
function checkUniqueName(kit: Kit, event: Captured, named: Map<string, Captured>): void {
  const [source, id] = ['source', 'id'].map((name) => member(event.envelope, name));
  if (typeof source !== 'string' || typeof id !== 'string') return;
  const key = JSON.stringify([source, id]);
  const before = named.get(key) ?? event;
  if (before !== event && contentOf(before) !== contentOf(event))
    fail(kit, '6-envelope', differs('one event of a source and id', `another one of ${key}`), event.line);
  named.set(key, before);
}

/** The rule of section 2.3 that the data of an event breaks; undefined if it breaks none. */
function screeningMismatch(data: Json | undefined, tenantId: string): Mismatch | undefined {
  const [id, tenant, testTime] = ['id', 'tenantId', 'testTime'].map((name) => member(data, name));
  if (integerOf(id) === undefined) return differs('data.id: a JSON integer', `id: ${excerpt(id)}`);
  if (typeof tenant !== 'string' || !isUuid(tenant) || tenant.toLowerCase() !== tenantId)
    return differs(
      `data.tenantId: ${tenantId}, the tenant of clients.primary`,
      `tenantId: ${excerpt(tenant)}`,
    );
  return typeof testTime === 'string' && parseInstant(testTime)
    ? undefined
    : differs('data.testTime: an RFC 3339 date-time with offset', `testTime: ${excerpt(testTime)}`);
}

test(
  'every captured event is a CloudEvents 1.0 envelope',
  about('6-envelope', { needs: 'token', access: 'reads' }),
  async ({ kit }) => {
    const named = new Map<string, Captured>();
    for (const event of await captured(kit)) {
      kit.ledger.check('6-envelope');
      for (const mismatch of envelopeMismatches(event.envelope))
        fail(kit, '6-envelope', mismatch, event.line);
      checkUniqueName(kit, event, named);
    }
  },
);

interface ScreeningEvents {
  readonly events: readonly Captured[];
  /** See newestOf. */
  readonly newest: ReadonlySet<Captured>;
  /** Of the events whose screening REST returns: what differs there; undefined if they are equal. */
  readonly differences: ReadonlyMap<Captured, Mismatch | undefined>;
  readonly rest: Rest;
}

/**
 * The captured events about screenings. A queue may carry other events too: if events of some types equal their REST
 * objects, the other types are left out.
 */
const screeningEvents = (kit: Kit): Promise<ScreeningEvents> =>
  kit.once('events about screenings', async () => {
    const all = await captured(kit);
    const span = spanOf(all, kit.target.window);
    const rest: Rest = span
      ? await restOf(span, kit)
      : { byId: new Map(), byDouble: new Map(), brokenOff: undefined };
    const differences = new Map<Captured, Mismatch | undefined>();
    for (const event of all) {
      const item = event.screeningId === undefined ? undefined : rest.byId.get(event.screeningId);
      if (item !== undefined && event.data !== undefined)
        differences.set(event, firstDifference(item, event.data));
    }
    const equal = all.filter((event) => differences.has(event) && !differences.get(event));
    const types = new Set(equal.map(({ type }) => type));
    const isOther = ({ type }: Captured): boolean => types.size > 0 && !types.has(type);
    const others = [...new Set(all.filter(isOther).map(({ type }) => type))];
    if (others.length > 0)
      kit.ledger.notes.add(`captured events of another type were not compared: ${others.join(', ')}`);
    const events = all.filter((event) => !isOther(event));
    return { events, newest: newestOf(events), differences, rest };
  });

/**
 * For an amended screening the newest event counts: by `time` if present, else the last one captured. A queue may
 * deliver an older event again after it.
 */
function newestOf(events: readonly Captured[]): ReadonlySet<Captured> {
  const newest = new Map<bigint, Captured>();
  const delivered = new Set<string>();
  for (const event of events) {
    const content = canonical(event.envelope);
    if (delivered.has(content)) continue;
    delivered.add(content);
    const before = event.screeningId === undefined ? undefined : newest.get(event.screeningId);
    const [was, is] = [before, event].map((one) => parseInstant(String(member(one?.envelope, 'time') ?? '')));
    const isOlder = was !== undefined && is !== undefined && compareInstants(is, was) < 0;
    if (event.screeningId !== undefined && !isOlder) newest.set(event.screeningId, event);
  }
  return new Set(newest.values());
}

test(
  'an event and REST show the same screening',
  about('6-same-object', { access: 'reads' }),
  async ({ kit }) => {
    const { events, newest, differences, rest } = await screeningEvents(kit);
    const tenantId = (await kit.tenantOf()).toLowerCase();
    let held = 0;
    for (const event of events) {
      const { line, data, screeningId } = event;
      // An event without a screening is reported under 6-envelope.
      if (!isObject(data)) continue;
      kit.ledger.check('6-same-object');
      const item = screeningId === undefined ? undefined : rest.byId.get(screeningId);
      if (item !== undefined) held++;
      const difference = newest.has(event) ? differences.get(event) : undefined;
      const different = difference && unlessSince(difference, 'amended');
      const isUnlike = item === undefined || different !== undefined;
      const mismatch =
        screeningMismatch(data, tenantId) ?? (isUnlike ? roundedId(event, rest) : undefined) ?? different;
      if (mismatch) fail(kit, '6-same-object', mismatch, line);
    }
    if (held === 0)
      throw new Untested('no event is about a screening that REST returns; capture events of some');
    kit.ledger.notes.add(`${held} of ${events.length} captured events are of screenings that REST returns`);
  },
);

/** A capture may be older than a change of the screening. */
const unlessSince = (mismatch: Mismatch, change: 'amended' | 'deleted' | 'stored'): Mismatch => ({
  ...mismatch,
  received: `${mismatch.received}${UNLESS}events, if the screening was ${change} since`,
});

/** The mismatch if the event equals a REST object except that its id was rounded to a double. */
function roundedId({ data, screeningId }: Captured, { byId, byDouble }: Rest): Mismatch | undefined {
  if (screeningId === undefined || !isObject(data)) return undefined;
  const id = byDouble.get(screeningId)?.find((exact) => {
    const item = byId.get(exact);
    return isObject(item) && firstDifference({ ...item, id: member(data, 'id')! }, data) === undefined;
  });
  if (id === undefined) return undefined;
  return differs(`id: ${id}, as REST returns it`, `id: ${screeningId}, which is what a double makes of it`);
}

test(
  'every screening of the window has an event, and every event a screening',
  about('6-complete', { access: 'reads' }),
  async ({ kit }) => {
    const { window } = kit.target;
    const { events, newest, rest } = await screeningEvents(kit);
    const known = await kit.oracle();
    // Without a window, the capture is complete at most between its first and last event that REST knows.
    const matched = events.filter(({ screeningId }) => rest.byId.has(screeningId!));
    const span = window ?? spanOf(matched, undefined);
    const whole = window ? await restOf(window, kit) : rest;
    if (whole.brokenOff !== undefined) throw new Untested(whole.brokenOff);
    const published = new Set(events.map(({ screeningId }) => screeningId));
    for (const id of window ? whole.byId.keys() : []) {
      kit.ledger.check('6-complete');
      if (!published.has(id))
        fail(
          kit,
          '6-complete',
          unlessSince(differs(`an event of screening ${id}`, 'none in the capture'), 'stored'),
        );
    }
    for (const event of events) {
      const { line, at, screeningId } = event;
      const within = at && span && isInside(at, span);
      // A screening missing from REST is reported under section 4.2.
      const lost = screeningId !== undefined && known.authoritative && known.get(screeningId) !== undefined;
      // An older version of a screening may lie in the window, and the newest one outside it.
      const isOlder = screeningId !== undefined && !newest.has(event);
      if (!within || lost || isOlder || (!window && roundedId(event, rest))) continue;
      kit.ledger.check('6-complete');
      if (screeningId === undefined || !whole.byId.has(screeningId)) {
        fail(
          kit,
          '6-complete',
          unlessSince(
            differs('only events of screenings that REST returns', `an event of ${screeningId ?? 'no id'}`),
            'deleted',
          ),
          line,
        );
      }
    }
    if (!window)
      throw new Untested(
        'to check that every screening has an event, supply window: the range of testTime that the capture covers completely',
      );
  },
);

/** What differs between REST and the event; undefined if they are equal. */
function firstDifference(item: Json, data: Json): Mismatch | undefined {
  const [rest, event] = differenceOf(item, data) ?? [];
  return rest === undefined ? undefined : differs(`${rest}, as REST returns it`, event!);
}
