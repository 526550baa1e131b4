/** Compares the screenings that a client collected with those of the window. */
import { member } from '../../../engine/client/json.ts';
import { parseInstant, sameInstant } from '../../../engine/data/instant.ts';
import type { Screening } from '../../../engine/data/dataset.ts';
import type { ClientFailure } from '../report.ts';
import { finding, type Play } from '../situation.ts';
import { several } from '../../render/results.ts';

const shown = (ids: readonly bigint[]): string =>
  `${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ` and ${ids.length - 3} more` : ''}`;

/** The findings on a collection that the client declared complete. */
export function collectionFindings(play: Play): ClientFailure[] {
  const { printed, expected, all } = play;
  const wanted = new Map(expected.map((screening) => [screening.id, screening]));
  const known = new Map(all.map((screening) => [screening.id, screening]));
  const times = new Map<bigint, number>();
  for (const { id } of printed.screenings) times.set(id, (times.get(id) ?? 0) + 1);

  const missing = expected.filter(({ id }) => !times.has(id));
  const repeated = [...times].filter(([, count]) => count > 1);
  const foreign = [...times.keys()].filter((id) => !known.has(id));
  const beside = [...times.keys()].filter(
    (id) => known.has(id) && !wanted.has(id) && play.given.events === undefined,
  );
  const found: ClientFailure[] = [];
  if (printed.malformed.length > 0) {
    found.push(
      finding('one JSON object a line', `a line that is none: ${printed.malformed[0]!.slice(0, 120)}`),
    );
  }
  if (missing.length > 0) found.push(lost(play, missing));
  if (repeated.length > 0) {
    const [id, count] = repeated[0]!;
    found.push(
      finding(
        'each screening once (the id is the key for deduplication)',
        `screening ${id} ${count} times${repeated.length > 1 ? `, and ${several(repeated.length - 1, 'other')} more than once` : ''}`,
      ),
    );
  }
  if (foreign.length > 0) found.push(finding('ids as they were sent', rounded(foreign, missing)));
  if (beside.length > 0) {
    found.push(
      finding('the screenings of [from, to) alone', `${shown(beside)}, which the window does not hold`),
    );
  }
  return [...found, ...altered(play, known)];
}

function rounded(foreign: readonly bigint[], missing: readonly Screening[]): string {
  const [id] = foreign as [bigint];
  const digits = missing.find((screening) => Number(screening.id) === Number(id) && screening.id !== id);
  return digits
    ? `${id}, which no screening has: digits of ${digits.id} were lost (ids are integers beyond 2^53 too)`
    : `${shown(foreign)}, which no screening has`;
}

function lost({ requests, expected, printed }: Play, missing: readonly Screening[]): ClientFailure {
  const [first] = missing as [Screening];
  const place = expected.indexOf(first);
  const before = expected[place - 1];
  const tie = before && sameInstant(parseInstant(before.testTime)!, parseInstant(first.testTime)!);
  const after = before ? `, which follows ${before.id}${tie ? ' at the same testTime' : ''}` : '';
  const double = BigInt(Number(first.id));
  const rounding =
    double !== first.id && printed.screenings.some(({ id }) => id === double)
      ? `; its id was rounded to ${double}, as a double is`
      : '';
  const last = requests.findLast(({ page }) => page !== undefined);
  const unfollowed = last?.page?.next !== undefined && printed.screenings.length < expected.length;
  return finding(
    `all ${several(expected.length, 'screening')} of the window`,
    `${expected.length - missing.length}, and exit status 0: ${first.id} is missing${after}` +
      `${missing.length > 1 ? `, and ${missing.length - 1} more` : ''}${rounding}` +
      `${unfollowed ? `; the last page asked for had ${several(last.page!.items, 'item')} and a next` : ''}`,
  );
}

/** A testTime that the client changed. Members that it leaves out do not matter. */
function altered({ printed }: Play, known: ReadonlyMap<bigint, Screening>): ClientFailure[] {
  for (const { id, json } of printed.screenings) {
    const original = known.get(id);
    if (!original) continue;
    const time = member(json, 'testTime');
    const at = typeof time === 'string' ? parseInstant(time) : undefined;
    if (at && !sameInstant(at, parseInstant(original.testTime)!)) {
      const expected = `testTime ${original.testTime} of screening ${id}`;
      return [finding(expected, String(time), [], 'SHOULD')];
    }
  }
  return [];
}
