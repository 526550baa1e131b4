/**
 * Every fault fails its requirement with the expected words, both with a complete target file and with only addresses
 * and credentials; of the neighbouring requirements no other one fails, and the first cause is the fault's own
 * requirement. Per seed, one theme runs over sockets and PostgreSQL, the others in process; and each fault runs with
 * its neighbours in one mode, and without them in the other. Of the two, the quick tier has the run without them, and
 * for one fault in sixty-four the run with them.
 */
import { expect } from '@playwright/test';
import { THEMES } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { FULL, SEED, turnOf } from '../../fixtures/own-tests/tiers.ts';
import type { RequirementId } from '../../engine/requirements.ts';
import { MAX_ID } from '../../engine/data/dataset.ts';
import { answering } from '../../reference-server/run/alter.ts';
import { certifyFault, certifyServer, modesOf, resultOf, selectionOf, verdictErrors } from './faults.ts';
import { test, type Stack, type World } from '../../reference-server/testing.ts';

test.describe.configure({ mode: 'parallel' });

/** Faults whose first cause is another requirement; at most one in twenty. */
const ANOTHER_ROOT = [
  'testTime is the local time of the device with Z',
  'next of the last page leads to the first',
  'adds the minutes of a negative offset instead of subtracting them',
  'the second of three ties across a page boundary is lost',
  'a to one microsecond after a second is that second',
  'a from of six digits is truncated to milliseconds',
  'a fraction is a number of microseconds, however many digits it has',
  'pages use an OFFSET that is too great by one',
  'concurrent requests need no token',
  'stored instants are truncated to milliseconds',
  'every second answer to the same request for five items lacks the first',
  'a cache key without pageSize',
  'from and to are compared as text',
  'the cursor compares testTime and id separately',
  'rejected requests get the 403 of a firewall',
  'two items are swapped after the fifth page of size 7',
  'a cache key without offsets',
  'the + of an offset is not encoded in next',
  'an offset east of UTC is another one in next, with a raw +',
  'a token response in deflate without Content-Encoding',
  'a window without screenings is 404',
];

/** In process only: Node's HTTP server itself refuses the method. */
const UNKNOWN_METHOD = 'an unknown method is served like GET and needs no token';

/** The kind of mistake that the first cause names first. */
const KINDS: Readonly<Record<string, string>> = {
  'to of next has milliseconds only': 'the cursor loses digits of testTime',
  'screenings are sorted newest first': 'the order is not (testTime, id)',
  'testTime is shown in milliseconds, and from of next in microseconds':
    'testTime is shown with fewer digits than it is stored and compared with',
  'timestamps are sorted by millisecond': 'times are cut before they are compared',
  'from and to are truncated to milliseconds': 'times are cut before they are compared',
  'a 429 has another code': 'errors do not carry the documented code',
  'a request without a token gets an empty page': 'a request without a proper token is served',
  'reads a pageSize up to its first letter': 'what is no integer is read as one',
  'a malformed integer is 422': 'the framework’s own error answers',
  'a from_id of no screening is refused': 'a valid window is refused',
  'a proxy removes the Authorization header': 'no token is accepted',
  'rejected requests are 503': 'the rate limit does not say how long to wait',
};

test('at most one fault in twenty has another requirement as its first cause', () => {
  const names = Object.values(THEMES)
    .flat()
    .map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining([...ANOTHER_ROOT, ...Object.keys(KINDS), UNKNOWN_METHOD]));
  expect(ANOTHER_ROOT.length).toBeLessThanOrEqual(names.length / 20);
});

test('a refused from_id is attributed to 4.2-from_id, and not to the fraction of from', async ({ small }) => {
  const refusing = answering('400 invalid_request', (_, query) => query.get('from_id') === String(MAX_ID));
  const only = ['4.2-from_id', '4.2-fractions-finer'] as const;
  const report = await certifyServer(small, refusing, 'bare', { runs: 1, only });
  expect(only.map((id) => resultOf(report, id).status)).toEqual(['fail', 'pass']);
});

const themes = Object.keys(THEMES);
const real = themes[SEED % themes.length];

const longest = Math.max(...Object.values(THEMES).map(({ length }) => length));

// A fault of each theme in turn, so that those that wait, for a rate limit or an outage, leave the processor to others.
for (let row = 0; row < longest; row += 1)
  for (const [theme, faults] of Object.entries(THEMES))
    if (faults[row]) test.describe(theme, () => prove(faults[row]!, theme));

function prove(fault: Fault, theme: string): void {
  const { name } = fault;
  const stack: Stack = theme === real && name !== UNKNOWN_METHOD ? 'real' : 'in process';
  const own = tripped(fault);
  const modes = modesOf(fault);
  for (const [at, mode] of modes.entries()) {
    const run = async (world: World, only: readonly RequirementId[]): Promise<void> => {
      const report = await certifyFault(world, fault, mode, only, stack);
      expect(verdictErrors(fault, report), stack).toEqual([]);
      const [cause] = report.diagnosis;
      if (cause && !ANOTHER_ROOT.includes(name)) expect(own).toContain(cause.root);
      if (name in KINDS) expect(cause?.behavesLike[0]?.name).toBe(KINDS[name]);
    };
    // The turn selects the mode with the neighbours, and one fault in sixty-four whose run with them is in the quick tier.
    const turn = turnOf(name, 64 * modes.length);
    const isTurn = turn % modes.length === at;
    const isQuick = turn < modes.length;
    const wide = {
      title: `${name}, ${mode}, with its neighbours`,
      only: selectionOf(fault),
      tier: isTurn && (isQuick || fault.needsNeighbours) ? {} : FULL,
    };
    const narrow = { title: `${name}, ${mode}`, only: own, tier: isQuick ? FULL : {} };
    const isNarrow = !fault.needsNeighbours && (modes.length > 1 ? !isTurn : !isQuick);
    const isWide = fault.needsNeighbours || isTurn;
    const proofs = [...(isNarrow ? [narrow] : []), ...(isWide ? [wide] : [])];
    for (const { title, only, tier } of proofs)
      if (fault.large) test(title, tier, async ({ large }) => run(large, only));
      else test(title, tier, async ({ small }) => run(small, only));
  }
}
