/** The results of a run by requirement: counts, findings, and why something could not be exercised. */
import type { RequirementId } from '../../requirements.ts';
import type { Exchange } from '../../client/exchange.ts';
import type { Mismatch, Judge } from '../../checks/mismatch.ts';
import { allPairs, pairsOf, type Factors, type OpenPairs, type Row } from './cover.ts';

/** Something broken, as data: reports make words of it. */
export interface Finding {
  readonly id: RequirementId;
  /** Findings of one cause are told once. */
  readonly cause: string;
  readonly mismatch: Mismatch;
  readonly exchange?: Exchange | undefined;
  /** Asked again with the same request, this tells whether it is still so. */
  readonly judge?: Judge | undefined;
  /** Asked again as a whole, where one request does not show it. */
  readonly again?: (() => Promise<Mismatch | undefined>) | undefined;
  /** Seen once only, it is dropped: data that arrived between two answers explains it as well. */
  readonly needsAgain?: boolean | undefined;
  readonly counterexample?: Readonly<Record<string, unknown>> | undefined;
  /** The circumstances that were chosen for it, since its rule holds in all of them. */
  readonly varied?: readonly string[] | undefined;
  /** The circumstances that it needs; empty where none was found. */
  readonly only?: readonly string[] | undefined;
  readonly confirmed?: string | undefined;
  /** Told, and no breach: what the specification foresees, or what no answer can prove. */
  readonly warning?: boolean | undefined;
  /** It was asked for again, as far as that can be. */
  readonly settled?: boolean | undefined;
  readonly count: number;
}

export type NewFinding = Omit<Finding, 'count'>;

/** A failure of the server that did not come again. */
export interface Incident {
  readonly failed: Exchange;
  /** The fewest requests in flight with which it failed. */
  readonly inFlight: number;
  /** When the same request was served. */
  readonly servedAtMs: number;
}

/** A figure of the evidence: how many seconds after its issue a token was accepted, at most. */
export const OLDEST_TOKEN = 'oldestTokenSeconds';

/** How a check ended. */
export interface Outcome {
  readonly title: string;
  readonly ids: readonly RequirementId[];
  readonly state: 'done' | 'untested' | 'error';
  readonly reason?: string;
  /** The requirement whose failure left it untested. */
  readonly because?: RequirementId | undefined;
  /** The target file's member for it does not work. */
  readonly unusable?: boolean;
  /** Its share of a small budget was not enough. */
  readonly shareSpent?: boolean;
  /** It was under way when the run ended before its end. */
  readonly cut?: boolean;
  readonly durationMs?: number;
  /** It goes beyond what the requirements ask: while it is untested they still count as tested. */
  readonly isSupplement: boolean;
}

export class Ledger {
  readonly checks = new Map<RequirementId, number>();
  private readonly ended = new Map<string, Outcome>();
  /** Observations of behaviour that the specification leaves open, by topic. */
  readonly observations = new Map<string, Set<string>>();
  readonly seen = new Map<string, number>();
  readonly laws = new Map<string, number>();
  /** Failures of the server that did not come again: what was served when it was tried again (section 7.2). */
  readonly incidents: Incident[] = [];
  /** Notes on the run as a whole, a line each. */
  readonly notes = new Set<string>();
  /** By rule, the pairs of circumstances that it was not asked in yet. */
  readonly notLookedAt = new Map<string, OpenPairs>();
  private readonly found = new Map<string, Finding>();

  check(id: RequirementId, times = 1): void {
    this.checks.set(id, (this.checks.get(id) ?? 0) + times);
  }

  /** Keeps the smallest evidence of each cause, and counts the rest. */
  add(finding: NewFinding): void {
    const key = keyOf(finding);
    const before = this.found.get(key);
    const kept = before && (before.settled || sizeOf(before) <= sizeOf(finding)) ? before : finding;
    this.found.set(key, { ...kept, count: (before?.count ?? 0) + 1 });
  }

  get findings(): readonly Finding[] {
    return [...this.found.values()];
  }

  /** Findings that were not confirmed yet. */
  get unconfirmed(): readonly Finding[] {
    return this.findings.filter(({ confirmed, settled }) => confirmed === undefined && !settled);
  }

  /** Puts what confirmation left of a finding in its place; undefined where it does not stand. */
  settle(finding: Finding, kept: Finding | undefined): void {
    const key = keyOf(finding);
    if (kept) this.found.set(key, { ...kept, settled: true });
    else this.found.delete(key);
  }

  /** Drops what does not stand any more, since what it was held against was wrong. */
  reconsider(ids: readonly RequirementId[]): void {
    for (const finding of this.unconfirmed)
      if (ids.includes(finding.id) && finding.exchange && finding.judge?.(finding.exchange) === undefined)
        this.settle(finding, undefined);
  }

  observe(topic: string, seen: string): void {
    const all = this.observations.get(topic) ?? new Set();
    this.observations.set(topic, all.add(seen));
  }

  /** A rule was asked in these circumstances, out of all that it has room for. */
  looked(rule: string, factors: Factors, row: Row): void {
    const pairs = this.notLookedAt.get(rule) ?? { factors, open: new Set(allPairs(factors).keys()) };
    for (const pair of pairsOf(row)) pairs.open.delete(pair);
    this.notLookedAt.set(rule, pairs);
  }

  /** How a check ended, the last time that it ran. */
  end(outcome: Outcome): void {
    this.ended.set(outcome.title, outcome);
  }

  /** A member of the target file is wrong: the run goes on without it, and is incomplete. */
  supplyUnusable(ids: readonly RequirementId[], reason: string): void {
    this.end({ title: reason, ids, state: 'untested', reason, unusable: true, isSupplement: false });
  }

  get outcomes(): readonly Outcome[] {
    return [...this.ended.values()];
  }

  /** Its share of a budget was spent before all that it is there for had been looked at. */
  isCutShort(title: string): boolean {
    const { shareSpent = false, ids = [] } = this.ended.get(title) ?? {};
    return shareSpent && ids.some((id) => !this.checks.has(id));
  }

  /** Raises a figure of the evidence to a value. */
  atLeast(name: string, value: number): void {
    this.seen.set(name, Math.max(this.seen.get(name) ?? 0, value));
  }

  count(name: string, times = 1): void {
    this.seen.set(name, (this.seen.get(name) ?? 0) + times);
  }
}

function sizeOf({ exchange }: NewFinding): number {
  return exchange ? exchange.text.length + exchange.request.url.length : 0;
}

const keyOf = ({ id, cause }: NewFinding): string => `${id} ${cause}`;
