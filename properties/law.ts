/** A law on a target: fast-check draws the cases, the kit asks, the smallest failing case is reported. */
import fc from 'fast-check';
import type { Exchange } from '../engine/client/exchange.ts';
import { isOrdered, pageOf, type PageQuery } from '../engine/client/page.ts';
import { compareKeys, type Key } from '../engine/data/oracle.ts';
import type { Mismatch } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { isTrusted } from '../engine/checks/next.ts';
import { pictureOfWalk } from '../engine/checks/walk-picture.ts';
import { sayItem } from '../engine/checks/page.ts';
import { amongThese, returnedAs } from '../engine/checks/returned-as.ts';
import { streamOf } from '../engine/run/state/cover.ts';
import { tokenVariable } from '../engine/run/evidence/evidence.ts';
import { quote } from '../engine/run/evidence/shell.ts';
import type { Check, Precondition } from '../engine/run/check.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { ClientName } from '../engine/target/target.ts';
import type { FetchPage, Ordering } from './paging-laws.ts';
import { Untested, PreconditionFailed } from '../engine/errors.ts';

/** How a case failed. */
export interface Violation {
  readonly mismatch: Mismatch;
  readonly exchange?: Exchange | undefined;
  /** Where the walk began that shows it. */
  readonly firstUrl?: string | undefined;
  /** Whose walk it is; primary's where absent. */
  readonly client?: ClientName | undefined;
}

export interface Law<Case> {
  readonly id: RequirementId;
  /** A sentence: what holds on any data. */
  readonly name: string;
  readonly precondition?: Precondition;
  /** Asked what the cases are drawn from, on the target at hand. Throws Untested where it shows nothing. */
  readonly cases: (kit: Kit) => Promise<fc.Arbitrary<Case>>;
  readonly holds: (kit: Kit, example: Case) => Promise<Violation | undefined>;
  /** The case as a short script. */
  readonly script: (example: Case) => readonly string[];
  /** Of the cases that a run asks for, this share: a costly law has fewer. */
  readonly share?: number;
  /** Sends wrong secrets: see Access. */
  readonly guesses?: boolean;
  /** Puts screenings into the scratch tenant. */
  readonly onScratch?: boolean;
  /** What the target may do between two answers explains a single failure. */
  readonly needsAgain?: boolean;
}

/** Evaluations that shrinking may take, and how long: a target may be slow, and a smaller case is no other failure. */
const SHRINKS_AT_MOST = 120;
const SHRINKING_AT_MOST_MS = 5_000;

export interface LawCheck extends Check {
  /** The law's name, as counterexamples carry it. */
  readonly law: string;
  /** The same law, whose counterexamples are shrunk with so many cases at most, and for so long. */
  readonly shrunkBy: (cases: number, atMostMs?: number) => Check;
}

/** The law as a check: its requirement is tested without it too. */
export function lawCheck<Case>(law: Law<Case>): LawCheck {
  const shrunkBy = (cases: number, atMostMs = SHRINKING_AT_MOST_MS): Check => ({
    ids: [law.id],
    title: `law: ${law.name}`,
    needs: law.precondition ?? 'data',
    access: law.guesses ? 'guesses' : law.onScratch ? 'scratch' : 'reads',
    isSupplement: true,
    run: (kit) => check(kit, law, cases, atMostMs),
  });
  return { ...shrunkBy(SHRINKS_AT_MOST), law: law.name, shrunkBy };
}

async function check<Case>(kit: Kit, law: Law<Case>, shrinks: number, atMostMs: number): Promise<void> {
  const arbitrary = await law.cases(kit);
  const seed = streamOf(kit.options.seed, law.name);
  const numRuns = Math.max(1, Math.round(kit.options.runs * (law.share ?? 1)));
  let last: { example: Case; violation: Violation } | undefined;
  let stopped: { error: unknown } | undefined;
  let evaluations = 0;
  let shrinkUntilMs = Infinity;
  const details = await fc.check(
    fc.asyncProperty(arbitrary, async (example) => {
      if (stopped || (last && (++evaluations > shrinks || Date.now() > shrinkUntilMs))) return true;
      kit.ledger.laws.set(law.name, (kit.ledger.laws.get(law.name) ?? 0) + 1);
      kit.ledger.check(law.id);
      try {
        const violation = await attempt(kit, law, example);
        if (violation) {
          last = { example, violation };
          shrinkUntilMs = Math.min(shrinkUntilMs, Date.now() + atMostMs);
        }
        return violation === undefined;
      } catch (error) {
        // No counterexample, so nothing to shrink: the target is gone, the budget spent, or the kit wrong.
        stopped = { error };
        return true;
      }
    }),
    { seed, numRuns, ...(kit.options.path ? { path: kit.options.path } : {}) },
  );
  if (stopped && !(last && stopped.error instanceof Untested)) throw stopped.error;
  if (!last) return;
  const { example, violation } = last;
  kit.fail({
    id: law.id,
    cause: law.name,
    mismatch: violation.mismatch,
    exchange: violation.exchange,
    again: async () => (await attempt(kit, law, example))?.mismatch,
    needsAgain: law.needsAgain,
    counterexample: {
      law: law.name,
      script: [...law.script(example), violation.mismatch.received],
      seed: kit.options.seed,
      path: details.counterexamplePath ?? '',
      shrinks: details.numShrinks,
      ...(violation.firstUrl ? { walk: curlWalk(violation.firstUrl, violation.client) } : {}),
    },
  });
}

/** A page that could not be had is reported under its own requirement: it says nothing about the law. */
async function attempt<Case>(kit: Kit, law: Law<Case>, example: Case): Promise<Violation | undefined> {
  try {
    return await law.holds(kit, example);
  } catch (error) {
    if (error instanceof PreconditionFailed) return undefined;
    throw error;
  }
}

// -- laws of paging over the kit -----------------------------------------------------------------

/** What laws compare: an item of an answer, or of what is known. */
export type Entry = Key & { readonly testTime: string | undefined };

export const ORDERING: Ordering<Entry> = {
  compare: compareKeys,
  say: sayItem,
  returnedAs: (wanted, items, expected) => returnedAs(wanted, items, amongThese(expected)),
};

/**
 * A walk from a shell, page by page, with $TOKEN in place of the token, which goes to no other origin. What the
 * server says is text at every turn: printed by printf, matched by sed, and a URL for curl and nothing else.
 */
const curlWalk = (url: string, client: ClientName = 'primary'): string =>
  `next=${quote(url)}; while case "$next" in ${quote(`${new URL(url).origin}/`)}*) ;; *) false;; esac; do ` +
  `page=$(curl -s --globoff -H "Authorization: Bearer $${tokenVariable(client)}" --url "$next"); printf '%s\\n' "$page"; ` +
  `next=$(printf '%s\\n' "$page" | sed -nE -e 's/.*"next" *: *"([^"]+)".*/\\1/' -e 't found' -e d -e ':found' -e 's/\\\\u0026/\\&/g' -e 's,\\\\/,/,g' -e p | head -n 1); done`;

export interface Fetched {
  readonly fetchPage: FetchPage<PageQuery, Entry>;
  /** The latest exchange: the evidence. */
  readonly last: () => Exchange | undefined;
  /** Where the latest walk began. */
  readonly first: () => string | undefined;
  /** Its pages, as far as it went. */
  readonly walked: () => readonly Exchange[];
}

/** Pages of a client's own tenant. A next that can't be followed ends the walk: it is reported under its own requirement. */
export function fetcher(kit: Kit, client: ClientName = 'primary'): Fetched {
  let latest: Exchange | undefined;
  let walked: Exchange[] = [];
  return {
    last: () => latest,
    first: () => walked[0]?.request.url,
    walked: () => walked,
    fetchPage: async (ask) => {
      latest = 'next' in ask ? await kit.follow(ask.next, client) : await kit.page(ask, { client });
      walked = 'next' in ask ? [...walked, latest] : [latest];
      if (latest.status !== 200) throw new PreconditionFailed(`a next was answered ${latest.status}`);
      const { items, nextUrl } = pageOf(latest);
      return {
        items: (items ?? []).filter(isOrdered),
        next: nextUrl !== undefined && isTrusted(nextUrl, kit.target) ? nextUrl : undefined,
      };
    },
  };
}

/** What a law over pages says, as a finding with the last exchange as its evidence. */
export async function over(
  kit: Kit,
  expected: string,
  law: (fetchPage: FetchPage<PageQuery, Entry>) => Promise<string | undefined>,
  client?: ClientName,
): Promise<Violation | undefined> {
  const { fetchPage, last, first, walked } = fetcher(kit, client);
  const received = await law(fetchPage);
  return received === undefined
    ? undefined
    : {
        mismatch: { expected, received, picture: pictureOfWalk(walked()) },
        exchange: last(),
        firstUrl: first(),
        client,
      };
}
