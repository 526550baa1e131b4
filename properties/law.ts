/** What a property of a target needs beyond fast-check: findings with evidence, confirmation, a request budget. */
import fc from 'fast-check';
import type { Exchange } from '../engine/client/exchange.ts';
import { orderedItems, type OrderedItem } from '../engine/client/page.ts';
import type { Key } from '../engine/data/oracle.ts';
import { displacedOn, missingFrom } from '../engine/checks/coverage.ts';
import type { Judge, Mismatch } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { pictureOfWalk } from '../engine/checks/walk-picture.ts';
import { stillThere } from '../engine/run/state/context.ts';
import { cameBack, walk } from '../engine/run/walk/walk.ts';
import { seedFor } from '../engine/run/state/covering-array.ts';
import { quote, targetOptions, tokenVariable } from '../engine/run/evidence/evidence.ts';
import type { CheckName } from '../engine/run/check.ts';
import type { ClientName, Target } from '../engine/target/target.ts';
import type { Traverse } from './paging-laws.ts';
import { Untested, PreconditionFailed } from '../engine/errors.ts';

export interface Violation {
  readonly mismatch: Mismatch;
  readonly exchange?: Exchange | undefined;
  /** The first URL of the walk that shows it. */
  readonly firstUrl?: string | undefined;
  /** The client that walked; primary if absent. */
  readonly client?: ClientName | undefined;
}

/** The violation that one answer shows; undefined if the judge finds none. */
export function violationIn(exchange: Exchange, judge: Judge): Violation | undefined {
  const mismatch = judge(exchange);
  return mismatch && { mismatch, exchange };
}

export type Holds<Case> = (example: Case) => Promise<Violation | undefined>;

interface Law<Case> {
  readonly cases: fc.Arbitrary<Case>;
  /** Resolves to the violation; undefined if the law holds for the case. */
  readonly holds: Holds<Case>;
  /** The case as steps that a reader can follow. */
  readonly script: (example: Case) => readonly string[];
  /** Cases that every run tries before the random ones. */
  readonly examples?: readonly Case[];
  /** The number of cases relative to --runs: an expensive law has fewer. */
  readonly share?: number;
  /** A change of the target's data between two answers could explain a single failure, so the failure must repeat. */
  readonly needsAgain?: boolean;
}

/** A smaller case shows the same failure; the target may be slow, and where data changes all laws may fail. */
const SHRINK = { requests: 500, timeMs: 5_000 } as const;

/**
 * Asserts a law of the target: a counterexample becomes a finding, which is confirmed and reported; a request budget
 * and a target that is gone end the run without a counterexample. `id`: the requirement that a counterexample breaks;
 * `title`: names the law in reports and seeds its random cases.
 */
export async function assertLaw<Case>(
  kit: Kit,
  { id, title }: CheckName,
  { cases, holds, script, examples = [], share = 1, needsAgain }: Law<Case>,
): Promise<void> {
  const { requests, timeMs } = { ...SHRINK, ...kit.options.shrink };
  let found:
    { readonly violation: Violation; readonly again: () => Promise<Violation | undefined> } | undefined;
  let stopped: { readonly error: unknown } | undefined;
  let unserved: PreconditionFailed | undefined;
  let judged = 0;
  let shrinkUntil = { requests: Infinity, ms: Infinity };
  const isShrunk = (): boolean => kit.client.requests >= shrinkUntil.requests || Date.now() > shrinkUntil.ms;

  const attempt = async (run: () => Promise<Violation | undefined>): Promise<Violation | undefined> => {
    try {
      const violation = await run();
      judged++;
      return violation;
    } catch (error) {
      // A page that cannot be fetched is reported under its own requirement and says nothing about the law.
      if (!(error instanceof PreconditionFailed)) throw error;
      unserved ??= error;
      return undefined;
    }
  };

  const predicate = async (example: Case): Promise<boolean> => {
    if (stopped || isShrunk()) return true;
    const before = judged;
    const run = (): Promise<Violation | undefined> => holds(example);
    try {
      const violation = await attempt(run);
      if (judged > before) {
        kit.ledger.laws.set(title, (kit.ledger.laws.get(title) ?? 0) + 1);
        kit.ledger.check(id);
      }
      if (violation) {
        if (!found) shrinkUntil = { requests: kit.client.requests + requests, ms: Date.now() + timeMs };
        found = { violation, again: () => attempt(run) };
      }
      return violation === undefined;
    } catch (error) {
      // Not a counterexample: the target is gone, the budget is exhausted, or the kit has a bug.
      stopped = { error };
      return true;
    }
  };

  await fc.assert(fc.asyncProperty(cases, predicate), {
    seed: seedFor(kit.options.seed, title),
    examples: examples.map((example): [Case] => [example]),
    numRuns: examples.length + Math.max(1, Math.round(kit.options.runs * share)),
    ...(kit.options.path ? { path: kit.options.path } : {}),
    asyncReporter: async ({ counterexample, counterexamplePath, numShrinks }) => {
      if (stopped && !(found && stopped.error instanceof Untested)) throw stopped.error;
      if (!found && judged === 0 && unserved) throw unserved;
      if (!found) return;
      const { violation, again } = found;
      kit.fail({
        id,
        cause: title,
        mismatch: violation.mismatch,
        exchange: violation.exchange,
        again: async () => {
          const repeated = await again();
          return repeated && { ...repeated.mismatch, exchange: repeated.exchange };
        },
        needsAgain,
        counterexample: {
          law: title,
          script: [...script(counterexample![0]), violation.mismatch.received],
          seed: kit.options.seed,
          path: counterexamplePath ?? '',
          shrinks: numShrinks,
          ...(violation.firstUrl ? { walk: curlWalk(kit.target, violation.firstUrl, violation.client) } : {}),
        },
      });
    },
  });
}

// -- laws of paging over the kit -----------------------------------------------------------------

/**
 * A shell loop that walks page by page. The token is $TOKEN and is sent to no other origin. What the server returns
 * is only data: printed by printf, matched by sed, and passed to curl as a URL.
 */
const curlWalk = (target: Target, url: string, client: ClientName = 'primary'): string =>
  `next=${quote(url)}; while case "$next" in ${quote(`${new URL(url).origin}/`)}*) ;; *) false;; esac; do ` +
  `page=$(${['curl -s --globoff', ...targetOptions(target)].join(' ')} -H "Authorization: Bearer $${tokenVariable(client)}" --url "$next"); printf '%s\\n' "$page"; ` +
  `next=$(printf '%s\\n' "$page" | sed -nE -e 's/.*"next" *: *"([^"]+)".*/\\1/' -e 't found' -e d -e ':found' -e 's/\\\\u0026/\\&/g' -e 's,\\\\/,/,g' -e p | head -n 1); done`;

interface Traversals {
  readonly traverse: Traverse;
  /** The pages of the latest traversal, and of all. */
  readonly latest: () => readonly Exchange[];
  readonly pages: readonly Exchange[];
}

/**
 * Traverses windows of a client's own tenant; with `knownBefore`, only items first seen before that many requests had
 * been sent count. Throws PreconditionFailed where a `next` cannot be followed, which is reported under its own
 * requirement.
 */
function traversals(kit: Kit, client: ClientName = 'primary', knownBefore = Infinity): Traversals {
  let latest: readonly Exchange[] = [];
  const pages: Exchange[] = [];
  return {
    pages,
    latest: () => latest,
    traverse: async (query, between) => {
      const walked = await walk(kit, query, { client, between });
      // Not read again below: traversals may be concurrent.
      const { exchanges } = walked;
      latest = exchanges;
      pages.push(...exchanges);
      if (walked.end === 'cut' || (walked.end === 'stuck' && !cameBack(walked)))
        throw new PreconditionFailed(
          walked.why ?? `a traversal did not end within ${exchanges.length} pages`,
        );
      const known = await kit.oracle(client);
      const counts = ({ id }: OrderedItem): boolean =>
        knownBefore === Infinity || (known.get(id)?.firstSeen ?? Infinity) < knownBefore;
      return exchanges.map((page) => orderedItems(page).filter(counts));
    },
  };
}

/** Runs a law over traversals; returns its violation with the last exchange as evidence. */
export async function violationOf(
  kit: Kit,
  expected: string,
  law: (traverse: Traverse) => Promise<string | undefined>,
  client?: ClientName,
): Promise<Violation | undefined> {
  let done = traversals(kit, client);
  let received = await law(done.traverse);
  const { oracleOf } = kit.knowledge;
  const lacks = (page: Exchange): readonly Key[] => [
    ...missingFrom(page, oracleOf),
    ...displacedOn(page, oracleOf),
  ];
  // An item that arrived or was deleted during the walk breaks no law: repeat with only the items known by now.
  if (received !== undefined && client !== 'scratch' && !(await kit.oracle(client)).authoritative) {
    await stillThere(kit, done.pages.at(-1)!, [...new Set(done.pages.flatMap(lacks))]);
    const { knownBefore } = await kit.oracle(client);
    done = traversals(kit, client, Math.min(knownBefore, kit.client.requests));
    received = await law(done.traverse);
  }
  const latest = done.latest();
  return received === undefined
    ? undefined
    : {
        mismatch: { expected, received, picture: pictureOfWalk(latest) },
        // The first page that lacks a known screening shows whether it was deleted meanwhile.
        exchange: done.pages.find((page) => lacks(page).length > 0) ?? latest.at(-1),
        firstUrl: latest[0]?.request.url,
        client,
      };
}
