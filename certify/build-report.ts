/** Builds the report from the ledger: statuses, classes, verdict. It judges nothing beyond the ledger. */
import { KIT_NAME, KIT_VERSION, commandLine } from '../engine/package.ts';
import { BudgetExhausted, PreconditionFailed, SupplyUnusable, TargetGone } from '../engine/errors.ts';
import type { Kit } from '../engine/run/kit.ts';
import { isViolation, OLDEST_TOKEN, type Finding, type Ledger } from '../engine/run/state/ledger.ts';
import { CLASSES, REQUIREMENTS } from '../engine/requirements.ts';
import type { Requirement, RequirementClass, RequirementId } from '../engine/requirements.ts';
import { sayUncovered } from '../engine/run/state/covering-array.ts';
import { secretsOf, type Target } from '../engine/target/target.ts';
import { failureOf, sameAnswerBefore, tokenCommands, type Wording } from '../engine/run/evidence/evidence.ts';
import { diagnose } from './diagnosis/diagnose.ts';
import { createRedactor } from '../engine/run/evidence/redact.ts';
import { redactReport } from './report/report.ts';
import type { Report, RequirementResult, Observation } from './report/report.ts';
import { several } from './render/results.ts';

interface RunFacts {
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly planned: number;
  readonly selection: readonly RequirementId[] | undefined;
  /** Why there is no token, no page or no screening to test with. */
  readonly lacking?: string | undefined;
  readonly interrupted?: string | undefined;
  /** Default: a command with the same seed. */
  readonly replay?: string | undefined;
}

const FAILURES_AT_MOST = 5;

export function buildReport(kit: Kit, facts: RunFacts): Report {
  const { target, ledger, options, client, knowledge } = kit;
  const redactor = createRedactor(secretsOf(target), client.issued);
  const words: Wording = { target, redact: redactor.redact };
  const reasons = declaredReasons(target);
  const isDeclared = ({ id, status }: RequirementResult): boolean =>
    status === 'untested' && reasons[id] !== undefined;
  const results = REQUIREMENTS.map((requirement) => resultOf(requirement, kit, words, facts)).map((result) =>
    isDeclared(result)
      ? { ...result, reason: `declared not applicable by the target file: ${reasons[result.id]}` }
      : result,
  );
  const isSelected = (id: RequirementId): boolean => facts.selection?.includes(id) ?? true;
  const selected = results.filter(({ id }) => isSelected(id));
  const declared = results.filter(isDeclared).map(({ id }) => ({ id, reason: reasons[id]! }));
  const counting = (of: readonly RequirementResult[]) => of.filter((result) => !isDeclared(result));
  const required = target.require ?? [];
  const musts = counting(selected).filter((result) => isRequired(result, required, facts));
  const basis = facts.interrupted ?? facts.lacking;
  const report: Report = {
    kit: { name: KIT_NAME, version: KIT_VERSION },
    target: { name: target.name, baseUrl: target.baseUrl, authUrl: target.authUrl },
    startedAt: facts.startedAt.toISOString(),
    durationMs: Math.round(facts.durationMs),
    requests: client.requests,
    seed: options.seed,
    ...conclusionOf(selected, musts, ledger, { ...facts, basis }),
    basis,
    required: required.length > 0 ? required : undefined,
    selection: facts.selection,
    coverage: { ...knowledge.coverage, oldestTokenSeconds: ledger.seen.get(OLDEST_TOKEN) ?? 0 },
    classes: Object.fromEntries(
      CLASSES.map((name) => [name, classOf(counting(results).filter((one) => one.class === name))]),
    ) as Report['classes'],
    evidence: {
      planned: facts.planned,
      executed: ledger.outcomes.filter(({ state }) => state === 'done').length,
      seen: Object.fromEntries(ledger.seen),
      laws: Object.fromEntries(ledger.laws),
      notLookedAt: notLookedAt(ledger),
    },
    diagnosis: diagnose(selected),
    declared: declared.length > 0 ? declared : undefined,
    notes: ledger.notes.size > 0 ? [...ledger.notes] : undefined,
    observations: observationsOf(ledger),
    replay: facts.replay ?? commandLine('certify', `--seed ${options.seed}`),
    tokenCommands: tokenCommands(
      target,
      results.flatMap(({ failures }) =>
        failures.flatMap(({ curl, counterexample }) => [curl, counterexample?.walk ?? '']),
      ),
    ),
    requirements: results,
  };
  return redactReport(report, redactor);
}

/** The combinations in which rules were not tested; rules with the same gaps are grouped. */
function notLookedAt({ uncovered }: Ledger): Report['evidence']['notLookedAt'] {
  const rules = new Map<string, { rules: string[]; circumstances: string[] }>();
  for (const [rule, pairs] of uncovered) {
    const gaps = sayUncovered(pairs);
    if (gaps.length === 0) continue;
    const alike = rules.get(gaps.join()) ?? { rules: [], circumstances: gaps };
    alike.rules.push(rule);
    rules.set(gaps.join(), alike);
  }
  return [...rules.values()];
}

function resultOf(
  { id, section, level, class: needs, title, lookAt }: Requirement,
  { ledger, knowledge: { pages } }: Pick<Kit, 'ledger' | 'knowledge'>,
  words: Wording,
  facts: RunFacts,
): RequirementResult {
  const checks = ledger.checks.get(id) ?? 0;
  const outcomes = ledger.outcomes.filter(({ ids }) => ids.includes(id));
  // The duration of a check of several requirements is divided evenly among them.
  const durationMs = outcomes.reduce((sum, { durationMs: ms = 0, ids }) => sum + ms / ids.length, 0);
  const age = id === '5-valid-token' ? ledger.seen.get(OLDEST_TOKEN) : undefined;
  const seconds = age === undefined ? '' : `; seen up to ${age} s after it was issued`;
  const result = (
    status: RequirementResult['status'],
    more: Partial<RequirementResult> = {},
  ): RequirementResult => ({
    ...{ id, section, level, class: needs, title: `${title}${seconds}`, lookAt: [...lookAt] },
    ...{ checks, durationMs: Math.round(durationMs), status, failures: [], ...more },
  });
  if (facts.selection && !facts.selection.includes(id))
    return result('untested', { reason: 'not selected (--only)' });
  const found = ledger.findings.filter((finding) => finding.id === id);
  if (found.length > 0) {
    // Violations before observations, and baseline requests before varied ones.
    const rank = ({ warning, varied }: Finding): number => (warning ? 2 : 0) + (varied ? 1 : 0);
    const failures = mostDifferent(found.sort((a, b) => rank(a) - rank(b)))
      .slice(0, FAILURES_AT_MOST)
      .map((finding) => failureOf(finding, words, sameAnswerBefore(finding.exchange, pages)));
    const broken = found.some(isViolation);
    return result(broken ? 'fail' : 'warn', { failures });
  }
  const error = outcomes.find(({ state }) => state === 'error');
  if (error) return result('error', { reason: `the kit failed in "${error.title}": ${error.reason}` });
  const reason = untestedReason(outcomes, checks, facts);
  if (reason === undefined) return result('pass');
  const cause = outcomes
    .flatMap(({ error, isSupplement }) =>
      !isSupplement && error instanceof PreconditionFailed && error.because ? error : [],
    )
    .find(({ because }) => isBroken(because!, ledger, facts));
  return result('untested', { reason: cause ? `because ${cause.because} failed: ${cause.message}` : reason });
}

const isBroken = (id: RequirementId, { findings }: Ledger, { selection }: RunFacts): boolean =>
  (selection?.includes(id) ?? true) && findings.some((finding) => finding.id === id);

/** First one of each status and expectation, such as an item that is missing and one that is too many. */
function mostDifferent(findings: readonly Finding[]): readonly Finding[] {
  const kindOf = ({ exchange, mismatch }: Finding): string =>
    `${exchange?.status} ${mismatch.expected.replace(/\d[\dTZ:.+-]*/g, '#')}`;
  const isFirst = (finding: Finding): boolean =>
    findings.find((other) => kindOf(other) === kindOf(finding)) === finding;
  return [...findings.filter(isFirst), ...findings.filter((finding) => !isFirst(finding))];
}

function untestedReason(outcomes: Ledger['outcomes'], checks: number, facts: RunFacts): string | undefined {
  const required = outcomes.filter(({ isSupplement }) => !isSupplement);
  // If the check's budget was exhausted, the results until then count.
  const untested = required.find(
    ({ state, error }) => state === 'untested' && !(error instanceof BudgetExhausted && checks > 0),
  );
  if (untested) return (untested.error instanceof TargetGone && facts.interrupted) || untested.reason;
  if (required.length === 0) return facts.interrupted ?? 'no probe was executed for it';
  return checks === 0 ? 'no answer was received to which it applies' : undefined;
}

function classOf(results: readonly RequirementResult[]): 'exercised' | 'partly' | 'untested' {
  const exercised = results.filter(({ status }) => ['pass', 'fail', 'warn'].includes(status)).length;
  if (exercised === 0) return 'untested';
  return exercised === results.length ? 'exercised' : 'partly';
}

/** A MUST of another class than core is required if it was selected by itself, not as a part of its section. */
function isRequired(
  { level, class: needs, section }: RequirementResult,
  required: readonly RequirementClass[],
  { selection }: RunFacts,
): boolean {
  const isOne = REQUIREMENTS.some((other) => other.section === section && !selection?.includes(other.id));
  return (
    level === 'MUST' && (needs === 'core' || required.includes(needs) || (selection !== undefined && isOne))
  );
}

/** The verdict, and the sentence that says what it is based on, or what would complete it. */
function conclusionOf(
  selected: readonly RequirementResult[],
  musts: readonly RequirementResult[],
  { outcomes }: Ledger,
  { selection, planned, basis }: RunFacts & Pick<Report, 'basis'>,
): Pick<Report, 'verdict' | 'summary'> {
  const of = selection ? ' of the selection' : '';
  const count = (status: string): number => selected.filter((result) => result.status === status).length;
  const failed = count('fail');
  if (failed > 0)
    return {
      verdict: 'non-conformant',
      summary: `${several(failed, 'MUST requirement')}${of} ${failed === 1 ? 'is' : 'are'} broken.`,
    };
  const incomplete = (summary: string) => ({ verdict: 'incomplete', summary }) as const;
  if (count('error') > 0) return incomplete('The kit itself failed: see the requirements with status error.');
  const unusable = outcomes.find(
    ({ error, ids }) => error instanceof SupplyUnusable && ids.some((id) => selection?.includes(id) ?? true),
  );
  const isHeld = ({ status }: RequirementResult): boolean => status === 'pass' || status === 'warn';
  if (unusable || !musts.every(isHeld) || !selected.some(isHeld)) {
    const supplied = unusable && `what was supplied does not work: ${unusable.reason}`;
    const open = musts.find(({ status }) => status === 'untested');
    const nothing = selected.every(({ status }) => status === 'untested');
    const found = nothing ? 'Nothing could be tested' : 'Nothing failed, but not everything could be tested';
    const why = basis ?? supplied ?? open?.reason ?? 'see the untested requirements';
    return incomplete(`${found}: ${why}.`);
  }
  const warns = selected.filter(({ status, level }) => status === 'warn' && level === 'SHOULD').length;
  const warned =
    warns > 0 && `${several(warns, 'recommendation')} ${warns === 1 ? 'is' : 'are'} not followed.`;
  const leftOut = outcomes.filter(({ error }) => error instanceof BudgetExhausted).length;
  const core = selection && count('untested') === 0 ? '' : 'core ';
  const sentences = [
    `Every ${core}MUST${of} holds, and no other is broken.`,
    warned,
    leftOut > 0 && `--budget left out ${leftOut} of ${planned} checks.`,
  ];
  return { verdict: 'conformant', summary: sentences.filter(Boolean).join(' ') };
}

// -- requirements that the target file declares not applicable -------------------------------------

/** By the requirement that needs the client. */
const declaredReasons = ({ notApplicable: no = {} }: Target): Partial<Record<RequirementId, string>> => ({
  '7.2-not_found': no.notOnboarded,
  '7.1-unauthorized_client': no.unauthorized,
  '7.1-invalid_grant': no.invalidGrant,
});

// -- the questions that the specification leaves open, and the behaviour observed for each ---------

const QUESTIONS: Readonly<Record<string, string>> = {
  'missing-from-code': 'Which code does a request without `from` get?',
  'missing-to-code': 'Which code does a request without `to` get?',
  dialects: 'Which dialects of clients were spoken?',
  http2: 'HTTP/2 is offered and gave no answer, where HTTP/1.1 did: what was said of it?',
  'default-page-items': 'How many items does a page without pageSize hold?',
  'negative-from_id': 'How is a negative from_id answered?',
  'repeated-parameter': 'How is a repeated query parameter answered?',
  'leap-second': 'How is second 60 answered?',
  'path-not-a-uuid': 'How is a path tenant that is no UUID answered?',
  'unknown-tenant': 'How is the path of an unknown tenant answered?',
  'scope-subset': 'What does a request for a known and an unknown scope get?',
  'secret-after-nul': 'How is the client_secret with a NUL and itself after it answered?',
  'letter-after-signature': 'How is a token with `!` after its signature answered?',
  'no-space-after-bearer': 'How is a token directly after `Bearer`, without a space, answered?',
  'json-token-request': 'How is a token request in JSON answered?',
  head: 'How is HEAD answered?',
  options: 'How is OPTIONS answered?',
  'trailing-slash': 'How is a slash after the path answered?',
  'encoded-path': 'How is a path with letters percent-encoded answered?',
  'refusal-in-shared-cache': 'Does Cache-Control let shared caches keep a 401?',
  'path-in-another-case': 'How is the own tenant in another case answered?',
  'uuid-in-another-form': 'How is the own tenant in another form of a UUID answered?',
  'unknown-parameter': 'How is an unknown query parameter answered?',
  'raw-plus': 'How is a raw + before an offset answered?',
  lockout: 'When is a client that sends wrong secrets locked out?',
  'next-of-earlier-run': 'How is a next answered that is older than an hour?',
  'chunked-token-request': 'How is a token request in chunks, without Content-Length, answered?',
  'get-token': 'How is a GET of the token endpoint answered?',
};

const observationsOf = ({ observations }: Ledger): Observation[] =>
  [...observations].map(([topic, seen]) => ({
    topic,
    question: QUESTIONS[topic] ?? topic,
    seen: [...seen].sort(),
  }));
