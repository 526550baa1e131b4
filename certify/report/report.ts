/** The schema of report.json: all renderings and the JSON Schema derive from it. */
import { z } from 'zod';
import type { DeepReadonly } from '../../engine/checks/walk-picture.ts';
import { failureSchema } from '../../engine/run/evidence/evidence.ts';
import { CLASSES, type RequirementId } from '../../engine/requirements.ts';
import type { Redactor } from '../../engine/run/evidence/redact.ts';

const text = z.string();
const count = z.number().int().nonnegative();
const numbers = z.record(text, z.number());
const requirementClass = z.enum(CLASSES);

export const statusSchema = z
  .enum(['pass', 'fail', 'warn', 'untested', 'error'])
  .describe('fail: a MUST is broken; warn: a SHOULD is; untested: see reason; error: the kit itself failed');
export const verdictSchema = z.enum(['conformant', 'non-conformant', 'incomplete']);

const requirementSchema = z.object({
  // Releases add ids, so the schema does not list them.
  id: text as unknown as z.ZodType<RequirementId>,
  section: text,
  level: z.enum(['MUST', 'SHOULD']),
  class: requirementClass,
  title: text,
  status: statusSchema,
  reason: text.optional().describe('why it is untested and what to supply, or the error of the kit'),
  lookAt: z.array(text).describe('where an implementer should look, most likely cause first'),
  durationMs: z.number().optional().describe('duration of its checks in milliseconds'),
  checks: count.describe('how many answers it was checked on'),
  failures: z.array(failureSchema).describe('smallest first'),
});

const observationSchema = z.object({
  topic: text.describe('a short name such as missing-from-code'),
  question: text,
  seen: z.array(text),
});

const likenessSchema = z.object({
  name: text.describe('a kind of mistake, in words'),
  why: text,
  remedy: text,
});

const diagnosisSchema = z
  .object({
    root: text.describe('the requirement that is broken most directly'),
    findings: z.array(text).describe('every requirement of the group, the root first'),
    failure: count
      .optional()
      .describe('index of the failure of the root that shows it, if it is not the first'),
    behavesLike: z
      .array(likenessSchema)
      .describe('kinds of mistake that break the root, the most frequent first'),
  })
  .describe('findings with a common cause');

const changesSchema = z.object({
  since: text.describe('when the earlier run began'),
  sameTarget: z.boolean(),
  newlyFailing: z.array(text),
  newlyPassing: z.array(text),
  noLongerExercised: z.array(text),
  changedObservations: z
    .array(text)
    .describe('observations, before and now, that have nothing in common with the earlier run'),
});

const knownFailureSchema = z.object({
  id: text,
  reason: text,
  expires: text.describe('the last day, as in 2026-12-31'),
  stand: z.enum(['failing', 'passes again', 'expired', 'not exercised']),
});

export const reportSchema = z.object({
  kit: z.object({ name: text, version: text }),
  target: z.object({ name: text, baseUrl: text, authUrl: text }).describe('never a secret or a token'),
  startedAt: text.describe('RFC 3339'),
  durationMs: z.number(),
  requests: count,
  seed: z.number().int(),
  verdict: verdictSchema,
  summary: text.describe('one sentence: what the verdict is based on, or what would complete it'),
  basis: text
    .optional()
    .describe('the first failure, if other requirements could not be tested because of it'),
  required: z
    .array(requirementClass)
    .optional()
    .describe('classes that had to be exercised in addition to core'),
  selection: z.array(text).optional().describe('the ids that the run was limited to; absent for a whole run'),
  coverage: z
    .object({
      deepestWalk: count.describe('screenings on the longest walk'),
      widestWindow: text.describe('the widest window that was served, from/to in UTC; empty if none was'),
      largestFullPage: count.describe('the largest page size with a full page; 0 if there was none'),
      oldestTokenSeconds: count.optional().describe('how long ago the oldest accepted token had been issued'),
    })
    .describe('how far the run went'),
  classes: z.record(requirementClass, z.enum(['exercised', 'partly', 'untested'])),
  evidence: z
    .object({
      planned: count,
      executed: count,
      seen: numbers,
      laws: numbers.describe('number of cases of each law'),
      notLookedAt: z
        .array(z.object({ rules: z.array(text), circumstances: z.array(text) }))
        .describe('levels of factors, alone or in pairs, in which rules were not tested'),
    })
    .describe('checks planned and executed, and counters of the run by name'),
  diagnosis: z.array(diagnosisSchema).describe('failures by cause; empty if nothing failed'),
  declared: z
    .array(z.object({ id: text, reason: text }))
    .optional()
    .describe('requirements that the target file declares not applicable, which no class counts'),
  notes: z.array(text).optional().describe('remarks on the whole run, which do not change the verdict'),
  observations: z.array(observationSchema).describe('what was seen where the specification is silent'),
  replay: text.describe('the command that replays this run'),
  tokenCommands: z.array(text).describe('commands that fetch the tokens for the curl commands'),
  requirements: z.array(requirementSchema).describe('all of them, in the order of the catalogue'),
  changes: changesSchema.optional().describe('with --baseline'),
  knownFailures: z.array(knownFailureSchema).optional().describe('with --known-failures'),
});

export type Status = z.infer<typeof statusSchema>;
export type Verdict = z.infer<typeof verdictSchema>;
export type RequirementResult = DeepReadonly<z.infer<typeof requirementSchema>>;
/** Observed behaviour where the specification is silent. */
export type Observation = DeepReadonly<z.infer<typeof observationSchema>>;
export type Diagnosis = DeepReadonly<z.infer<typeof diagnosisSchema>>;
/** Differences from an earlier run: requirement ids in the order of the catalogue. */
export type Changes = DeepReadonly<z.infer<typeof changesSchema>>;
/** An expected failure; it does not change the verdict. */
export type KnownFailure = DeepReadonly<z.infer<typeof knownFailureSchema>>;
export type Report = DeepReadonly<z.infer<typeof reportSchema>>;

/** Without secrets, except in what the kit fixes (ids, titles …): a secret such as `core` must not make it unreadable. */
export function redactReport(report: Report, { redact, redactDeep }: Redactor): Report {
  const { kit, startedAt, verdict, selection, required, classes, ...rest } = report;
  const { requirements, evidence, diagnosis, ...texts } = rest;
  return {
    ...redactDeep(texts, 'fixed'),
    ...{ kit, startedAt, verdict, classes, selection, required },
    diagnosis: diagnosis.map(({ behavesLike, ...ids }) => ({
      ...ids,
      behavesLike: redactDeep(behavesLike, 'fixed'),
    })),
    evidence: { ...evidence, seen: redactDeep(evidence.seen), laws: redactDeep(evidence.laws) },
    requirements: requirements.map(({ reason, failures, ...fixed }) => ({
      ...fixed,
      ...(reason !== undefined && { reason: redact(reason) }),
      failures: redactDeep(failures, 'fixed'),
    })),
  };
}
