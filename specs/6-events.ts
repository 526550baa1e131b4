/** Section 6: the captured events of the tenant's queue against what REST returns. */
import {
  canonical,
  excerpt,
  isObject,
  member,
  integerOf,
  parseJson,
  type Json,
} from '../fixtures/client/json.ts';
import { MAX_PAGE_SIZE, pageOf, type PageQuery } from '../fixtures/client/page.ts';
import { compareInstants, formatInstant, instant, parseInstant } from '../fixtures/data/instant.ts';
import { differs } from '../fixtures/checks/mismatch.ts';
import type { Kit } from '../fixtures/run/kit.ts';
import { isUuid } from '../fixtures/checks/page.ts';
import { sampleDataOf, windowOf } from '../fixtures/run/survey.ts';
import { walk } from '../fixtures/run/walk.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import type { RequirementId } from '../fixtures/requirements.ts';
import { SupplyUnusable, Untested } from '../fixtures/errors.ts';

const WALK_PAGES = 100;
const ATTRIBUTES = ['id', 'source', 'type'] as const;

interface Captured {
  readonly line: number;
  readonly envelope: Json | undefined;
  readonly data: Json | undefined;
  readonly screeningId: bigint | undefined;
}

/** The events of the capture; a line may hold a batch (CloudEvents JSON format, 4). */
function captured(kit: Kit): readonly Captured[] {
  const { events } = kit.target;
  if (!events) throw new Untested("supply events: a capture of primary's queue, one JSON CloudEvent a line");
  if (events.length === 0) throw new SupplyUnusable('the events file is empty; capture some events first');
  if (events.every((text) => parseJson(text) === undefined))
    throw new SupplyUnusable('no line of the events file is JSON; supply one JSON CloudEvent a line');
  return events.flatMap((text, index) => {
    const json = parseJson(text);
    return (Array.isArray(json) ? json : [json]).map((envelope) => {
      const data = dataOf(envelope);
      return { line: index + 1, envelope, data, screeningId: integerOf(member(data, 'id')) };
    });
  });
}

/** `data`, or `data_base64` decoded (CloudEvents JSON format, 3.1). */
function dataOf(envelope: Json | undefined): Json | undefined {
  const encoded = member(envelope, 'data_base64');
  return typeof encoded === 'string'
    ? parseJson(Buffer.from(encoded, 'base64').toString('utf8'))
    : member(envelope, 'data');
}

function fail(kit: Kit, id: RequirementId, expected: string, received: string): void {
  kit.fail({ id, cause: 'events', mismatch: differs(expected, received) });
}

/** Every screening that REST returns of the window that the capture is about. */
const restOf = (kit: Kit): Promise<{ query: PageQuery; byId: Map<bigint, Json> }> =>
  kit.once('events window', async () => {
    const { window } = kit.target;
    const sample = await sampleDataOf(kit);
    const query = window
      ? { from: formatInstant(window.from), to: formatInstant(window.to), pageSize: MAX_PAGE_SIZE }
      : { ...windowOf(sample.items), pageSize: MAX_PAGE_SIZE };
    const walked = await walk(kit, query, { maxPages: WALK_PAGES });
    if (walked.end !== 'complete') {
      throw new Untested(
        `the window could not be walked to its end within ${WALK_PAGES} pages; name a smaller window`,
      );
    }
    const items = walked.exchanges.flatMap((exchange) => pageOf(exchange).items ?? []);
    return {
      query,
      byId: new Map(items.flatMap((item) => (item.id === undefined ? [] : [[item.id, item.json]]))),
    };
  });

export const probes: readonly Probe[] = [
  {
    ids: ['6-envelope'],
    name: 'envelopes of the captured events',
    precondition: 'token',
    run: async (kit) => {
      for (const { line, envelope } of captured(kit)) {
        kit.ledger.check('6-envelope');
        if (!isObject(envelope)) {
          fail(kit, '6-envelope', 'a CloudEvent as a JSON object', `line ${line} is none`);
          continue;
        }
        const version = member(envelope, 'specversion');
        if (version !== '1.0') {
          fail(kit, '6-envelope', 'specversion: "1.0"', `specversion: ${excerpt(version)} on line ${line}`);
        }
        for (const name of ATTRIBUTES) {
          const value = member(envelope, name);
          if (typeof value !== 'string' || value === '') {
            fail(
              kit,
              '6-envelope',
              `${name}: a non-empty string`,
              `${name}: ${excerpt(value)} on line ${line}`,
            );
          }
        }
        if (!isObject(dataOf(envelope))) {
          fail(
            kit,
            '6-envelope',
            'data: the screening',
            `data: ${excerpt(dataOf(envelope))} on line ${line}`,
          );
        }
      }
    },
  },
  {
    ids: ['6-same-object'],
    name: 'the same screening on both transports',
    precondition: 'data',
    run: async (kit) => {
      const events = captured(kit);
      const { byId } = await restOf(kit);
      for (const { line, data, screeningId } of events) {
        const item = screeningId === undefined ? undefined : byId.get(screeningId);
        if (item === undefined) continue;
        kit.ledger.check('6-same-object');
        const difference = firstDifference(item, data);
        if (difference)
          fail(
            kit,
            '6-same-object',
            `${difference[0]} as REST returns item ${screeningId}`,
            `${difference[1]} on line ${line}`,
          );
      }
      if (!kit.ledger.checks.has('6-same-object')) {
        throw new SupplyUnusable(
          "no event is about a screening of the window; capture events of the window's screenings",
        );
      }
    },
  },
  {
    ids: ['6-complete'],
    name: 'events and screenings of the window, one for one',
    precondition: 'data',
    run: async (kit) => {
      const events = captured(kit);
      if (!kit.target.window)
        throw new Untested('supply window: the stretch of testTime that the capture covers whole');
      const { query, byId } = await restOf(kit);
      const known = await kit.oracle();
      const published = new Set(events.map(({ screeningId }) => screeningId));
      for (const id of byId.keys()) {
        kit.ledger.check('6-complete');
        if (!published.has(id)) fail(kit, '6-complete', `an event of screening ${id}`, 'none in the capture');
      }
      for (const { line, data, screeningId } of events) {
        const at = parseInstant(String(member(data, 'testTime') ?? ''));
        const within =
          at && compareInstants(at, instant(query.from)) >= 0 && compareInstants(at, instant(query.to)) < 0;
        // What REST loses on the way is reported under section 4.2.
        const lost = screeningId !== undefined && known.authoritative && known.get(screeningId) !== undefined;
        if (!within || lost) continue;
        kit.ledger.check('6-complete');
        if (screeningId === undefined || !byId.has(screeningId)) {
          fail(
            kit,
            '6-complete',
            'only events of screenings that REST returns',
            `an event of ${screeningId ?? 'no id'} on line ${line}`,
          );
        }
      }
    },
  },
];

/** A UUID is the same in either case. */
function comparable(screening: Json | undefined): Json | undefined {
  const tenantId = member(screening, 'tenantId');
  return isObject(screening) && typeof tenantId === 'string' && isUuid(tenantId)
    ? { ...screening, tenantId: tenantId.toLowerCase() }
    : screening;
}

/** The first member that differs: what REST says, what the event says. */
function firstDifference(item: Json, data: Json | undefined): [string, string] | undefined {
  if (canonical(comparable(item)) === canonical(comparable(data))) return undefined;
  const names = new Set([...Object.keys(item ?? {}), ...Object.keys(isObject(data) ? data : {})]);
  for (const name of names) {
    const [rest, event] = [item, data].map((object) => member(comparable(object), name));
    if (canonical(rest) !== canonical(event))
      return [`${name}: ${excerpt(rest)}`, `${name}: ${excerpt(event)}`];
  }
  return [excerpt(item), excerpt(data)];
}
