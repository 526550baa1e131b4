/** From a ledger to the report: statuses, classes, verdict. Nothing is judged here that is not in the ledger. */
import { createRequire } from 'node:module';
import type { Kit } from '../fixtures/run/kit.ts';
import type { Ledger } from '../fixtures/run/ledger.ts';
import type { FailedPreconditions } from '../fixtures/run/run-probe.ts';
import { CLASSES, REQUIREMENTS, type Requirement, type RequirementId } from '../fixtures/requirements.ts';
import { secretsOf } from '../fixtures/target/target.ts';
import { failureOf, tokenCommands, type Wording } from '../fixtures/run/evidence.ts';
import { observationsOf } from './observations.ts';
import { createRedactor } from '../fixtures/run/redact.ts';
import { redactReport } from './redact-report.ts';
import type { Report, RequirementResult, Verdict } from './report.ts';

const { name, version } = createRequire(import.meta.url)('../package.json') as {
  name: string;
  version: string;
};

export interface RunFacts {
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly planned: number;
  /** The ids that the run was limited to; undefined for all. */
  readonly selection: readonly RequirementId[] | undefined;
  readonly basis: FailedPreconditions;
  /** The command that repeats the run. */
  readonly replay: string;
  /** Why the run ended before its end. */
  readonly interrupted?: string | undefined;
}

const FAILURES_AT_MOST = 5;

export function buildReport({ target, ledger, options, client }: Kit, facts: RunFacts): Report {
  // Tokens in JWT form are known by their shape.
  const opaque = [...client.issued].filter((token) => !token.startsWith('eyJ'));
  const redactor = createRedactor([...secretsOf(target), ...opaque]);
  const words: Wording = { target, redact: redactor.redact };
  const results = REQUIREMENTS.map((requirement) => resultOf(requirement, ledger, words, facts));
  const selected = facts.selection ? results.filter(({ id }) => facts.selection!.includes(id)) : results;
  const verdict = verdictOf(selected, facts);
  const report: Report = {
    kit: { name, version },
    target: { name: target.name, baseUrl: target.baseUrl, authUrl: target.authUrl },
    startedAt: facts.startedAt.toISOString(),
    durationMs: Math.round(facts.durationMs),
    requests: client.requests,
    seed: options.seed,
    verdict,
    summary: summaryOf(verdict, selected, facts),
    ...basisText(facts),
    ...(facts.selection ? { selection: facts.selection } : {}),
    classes: Object.fromEntries(
      CLASSES.map((name) => [name, classOf(results.filter((result) => result.class === name))]),
    ) as Report['classes'],
    evidence: {
      planned: facts.planned,
      executed: ledger.outcomes.filter(({ state }) => state === 'done').length,
      seen: Object.fromEntries(ledger.seen),
      laws: Object.fromEntries(ledger.laws),
    },
    observations: observationsOf(ledger),
    replay: facts.replay,
    tokenCommands: tokenCommands(
      target,
      results.flatMap(({ failures }) => failures.map(({ curl }) => curl)),
    ),
    requirements: results,
  };
  return redactReport(report, redactor);
}

function basisText({ basis, interrupted }: RunFacts): { basis?: string } {
  const broken = interrupted ?? basis.token ?? basis.page ?? basis.data;
  return broken === undefined ? {} : { basis: broken };
}

function resultOf(
  requirement: Requirement,
  ledger: Ledger,
  words: Wording,
  facts: RunFacts,
): RequirementResult {
  const { id, section, level, class: needs, title, lookAt } = requirement;
  const checks = ledger.checks.get(id) ?? 0;
  const common = { id, section, level, class: needs, title, lookAt: [...lookAt], checks };
  if (facts.selection && !facts.selection.includes(id)) {
    return { ...common, status: 'untested', reason: 'not selected (--only)', failures: [] };
  }
  const found = ledger.findings.filter((finding) => finding.id === id);
  if (found.length > 0) {
    const failures = found.slice(0, FAILURES_AT_MOST).map((finding) => failureOf(finding, words));
    return { ...common, status: level === 'MUST' ? 'fail' : 'warn', failures };
  }
  const outcomes = ledger.outcomes.filter(({ ids }) => ids.includes(id));
  const error = outcomes.find(({ state }) => state === 'error');
  if (error)
    return {
      ...common,
      status: 'error',
      reason: `the kit went wrong in "${error.name}": ${error.reason}`,
      failures: [],
    };
  const reason = untestedReason(outcomes, checks, facts);
  return reason === undefined
    ? { ...common, status: 'pass', failures: [] }
    : { ...common, status: 'untested', reason, failures: [] };
}

function untestedReason(outcomes: Ledger['outcomes'], checks: number, facts: RunFacts): string | undefined {
  const required = outcomes.filter(({ supplement }) => !supplement);
  const untested = required.find(({ state }) => state === 'untested');
  if (untested) return untested.reason;
  if (required.length === 0) return facts.interrupted ?? 'no probe was executed for it';
  return checks === 0 ? 'no answer was seen that it could be held against' : undefined;
}

function classOf(results: readonly RequirementResult[]): 'exercised' | 'partly' | 'untested' {
  const exercised = results.filter(({ status }) => ['pass', 'fail', 'warn'].includes(status)).length;
  if (exercised === 0) return 'untested';
  return exercised === results.length ? 'exercised' : 'partly';
}

function verdictOf(selected: readonly RequirementResult[], { selection }: RunFacts): Verdict {
  if (selected.some(({ status }) => status === 'fail')) return 'non-conformant';
  const musts = selected.filter(
    ({ level, class: needs }) => level === 'MUST' && (selection || needs === 'core'),
  );
  const open = musts.some(({ status }) => status !== 'pass');
  const erred = selected.some(({ status }) => status === 'error');
  const passed = selected.some(({ status }) => status === 'pass');
  return open || erred || !passed ? 'incomplete' : 'conformant';
}

function summaryOf(verdict: Verdict, selected: readonly RequirementResult[], facts: RunFacts): string {
  const of = facts.selection ? ' of the selection' : '';
  const count = (status: string): number => selected.filter((result) => result.status === status).length;
  if (verdict === 'non-conformant')
    return `${count('fail')} MUST requirements${of} are broken.`
      .replace(/^1 MUST requirements/, '1 MUST requirement')
      .replace('requirement are', 'requirement is')
      .replace('requirement of the selection are', 'requirement of the selection is');
  if (verdict === 'conformant') {
    const warned = count('warn') > 0 ? ` ${count('warn')} recommendations are not followed.` : '';
    return `Every ${facts.selection ? '' : 'core '}MUST${of} holds, and no other is broken.${warned}`;
  }
  if (count('error') > 0) return 'The kit itself went wrong: see the requirements with status error.';
  const { basis } = basisText(facts);
  const first = selected.find(
    ({ status, level, class: needs }) =>
      status === 'untested' && level === 'MUST' && (needs === 'core' || facts.selection),
  );
  return `Nothing is broken, but not everything could be exercised: ${basis ?? first?.reason ?? 'see the untested requirements'}.`;
}
