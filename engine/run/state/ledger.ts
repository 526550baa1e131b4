/** The results of a run by requirement: counts, findings, and reasons why something could not be tested. */
import { requirement, type RequirementId } from '../../requirements.ts';
import { isHang, type Exchange } from '../../client/exchange.ts';
import type { Counterexample, Mismatch, MismatchWithEvidence, Judge } from '../../checks/mismatch.ts';
import { BudgetExhausted, SupplyUnusable } from '../../errors.ts';
import { allPairs, pairsOf, type Factors, type UncoveredPairs, type Combination } from './covering-array.ts';

/** A failed expectation as data; reports render it. */
export interface Finding {
  readonly id: RequirementId;
  /** Findings with the same cause are reported once. */
  readonly cause: string;
  readonly mismatch: Mismatch;
  /** The invalid part of the request, as on the wire. */
  readonly value?: string | undefined;
  /** All values with the same cause, since the same mistake rarely explains them all. */
  readonly values: readonly string[];
  readonly exchange?: Exchange | undefined;
  /** Judges the answer when the same request is sent again. */
  readonly judge?: Judge | undefined;
  /** Confirms the finding if one request cannot show it. */
  readonly again?: (() => Promise<MismatchWithEvidence | undefined>) | undefined;
  /** Drop the finding if it occurs only once: data that arrived between two answers explains it too. */
  readonly needsAgain?: boolean | undefined;
  readonly counterexample?: Counterexample | undefined;
  /** The levels of its combination; the rule must hold in all combinations. */
  readonly varied?: readonly string[] | undefined;
  /** The minimal failing combination; empty if none was found. */
  readonly only?: readonly string[] | undefined;
  readonly confirmed?: string | undefined;
  /** Reported, but no violation: the specification allows it, or no answer can prove it. */
  readonly warning?: boolean | undefined;
  /** Confirmation is complete. */
  readonly settled?: boolean | undefined;
  readonly count: number;
}

/** Makes the target non-conformant: a warning about a MUST does not. */
export const isViolation = ({ id, warning }: Pick<Finding, 'id' | 'warning'>): boolean =>
  requirement(id).level === 'MUST' && !warning;

export type NewFinding = Omit<Finding, 'count' | 'values'>;

/** A server failure that did not recur. */
export interface Incident {
  readonly failed: Exchange;
  /** The lowest number of requests in flight with which it failed. */
  readonly inFlight: number;
  /** When the same request was served. */
  readonly servedAtMs: number;
  /** A guard may have closed the connection. */
  readonly isByGuard: boolean;
}

/** Evidence: the greatest age, in seconds, of an accepted token. */
export const OLDEST_TOKEN = 'oldestTokenSeconds';

export interface Outcome {
  readonly title: string;
  readonly ids: readonly RequirementId[];
  readonly state: 'done' | 'untested' | 'error';
  readonly reason?: string;
  readonly error?: unknown;
  readonly durationMs?: number;
  /** Goes beyond the requirements: if it is untested, they still count as tested. */
  readonly isSupplement: boolean;
}

/** How many further exchanges with the same cause are kept, in case confirmation drops the finding. */
const SPARES = 2;

export class Ledger {
  readonly checks = new Map<RequirementId, number>();
  private readonly ended = new Map<string, Outcome>();
  /** Observed behaviour that the specification leaves open, by topic. */
  readonly observations = new Map<string, Set<string>>();
  readonly seen = new Map<string, number>();
  readonly laws = new Map<string, number>();
  /** Server failures that did not recur: a retry was served (section 7.2). */
  readonly incidents: Incident[] = [];
  /** One-line notes on the whole run. */
  readonly notes = new Set<string>();
  /** By rule, the pairs of levels that it was not tested in yet. */
  readonly uncovered = new Map<string, UncoveredPairs>();
  private readonly found = new Map<string, Finding>();
  private readonly spares = new Map<string, NewFinding[]>();

  check(id: RequirementId): void {
    this.checks.set(id, (this.checks.get(id) ?? 0) + 1);
  }

  /** Keeps the smallest evidence for each cause with a few spares, and counts the rest. */
  add(finding: NewFinding): void {
    const key = keyOf(finding);
    const before = this.found.get(key);
    const [kept, spare] =
      before && (before.settled || sizeOf(before) <= sizeOf(finding)) ? [before, finding] : [finding, before];
    if (spare && !kept.settled)
      this.spares.set(key, [spare, ...(this.spares.get(key) ?? [])].slice(0, SPARES));
    const values = [...new Set([...(before?.values ?? []), finding.value ?? []].flat())];
    this.found.set(key, { ...kept, values, count: (before?.count ?? 0) + 1 });
  }

  get findings(): readonly Finding[] {
    return [...this.found.values()];
  }

  /** The findings about requests that got no answer: each further request like them would take two timeouts. */
  get hangs(): readonly Finding[] {
    return this.findings.filter(({ exchange }) => exchange && isHang(exchange));
  }

  get unconfirmed(): readonly Finding[] {
    return this.findings.filter(({ confirmed, settled }) => confirmed === undefined && !settled);
  }

  /** Replaces a finding by its confirmed form; undefined drops it, and a spare with the same cause takes its place. */
  settle(finding: Finding, kept: Finding | undefined): void {
    const key = keyOf(finding);
    const spare = this.spares.get(key)?.shift();
    if (kept) this.found.set(key, { ...kept, settled: true });
    else if (spare) this.found.set(key, { ...spare, values: finding.values, count: finding.count });
    else this.found.delete(key);
  }

  /** Drops findings that no longer fail, because their expectation was corrected. */
  reconsider(ids: readonly RequirementId[]): void {
    const holds = ({ id, exchange, judge }: Finding): boolean =>
      ids.includes(id) && exchange !== undefined && judge?.(exchange) === undefined;
    for (let stale = this.unconfirmed.find(holds); stale; stale = this.unconfirmed.find(holds))
      this.settle(stale, undefined);
  }

  observe(topic: string, seen: string): void {
    const all = this.observations.get(topic) ?? new Set();
    this.observations.set(topic, all.add(seen));
  }

  /** Notes that a rule was tested in a combination, out of all levels that apply to it. */
  noteCombination(rule: string, factors: Factors, combination: Combination): void {
    const pairs = this.uncovered.get(rule) ?? { factors, open: new Set(allPairs(factors).keys()) };
    for (const pair of pairsOf(combination)) pairs.open.delete(pair);
    this.uncovered.set(rule, pairs);
  }

  /** Records how a check ended; a later run of it replaces the outcome. */
  end(outcome: Outcome): void {
    this.ended.set(outcome.title, outcome);
  }

  /** A member of the target file is wrong: the run continues without it and is incomplete. */
  supplyUnusable(ids: readonly RequirementId[], reason: string): void {
    const error = new SupplyUnusable(reason);
    this.end({ title: reason, ids, state: 'untested', reason, error, isSupplement: false });
  }

  get outcomes(): readonly Outcome[] {
    return [...this.ended.values()];
  }

  /** Whether its budget share was exhausted before all its requirements were tested. */
  isCutShort(title: string): boolean {
    const { error, ids = [] } = this.ended.get(title) ?? {};
    return error instanceof BudgetExhausted && ids.some((id) => !this.checks.has(id));
  }

  /** Raises a figure of the evidence to at least this value. */
  raiseTo(name: string, value: number): void {
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
