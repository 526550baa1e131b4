/** The schema of report.json: all renderings and the JSON Schema derive from it. */
import { z } from 'zod';
import type { DeepReadonly } from '../engine/deep-readonly.ts';
import { failureSchema, type Failure } from '../engine/run/evidence/evidence.ts';
import { CLASSES, type RequirementId } from '../engine/requirements.ts';

export type { Failure };

const text = z.string();
const count = z.number().int().nonnegative();
const numbers = z.record(text, z.number());
const requirementClass = z.enum(CLASSES);

const statusSchema = z
  .enum(['pass', 'fail', 'warn', 'untested', 'error'])
  .describe('fail: a MUST is broken; warn: a SHOULD is; untested: see reason; error: the kit went wrong');
const verdictSchema = z.enum(['conformant', 'non-conformant', 'incomplete']);

const requirementSchema = z.object({
  // Releases add ids, so the schema does not list them.
  id: text as unknown as z.ZodType<RequirementId>,
  section: text,
  level: z.enum(['MUST', 'SHOULD']),
  class: requirementClass,
  title: text,
  status: statusSchema,
  reason: text.optional().describe('why untested, and what to supply; what the kit tripped over'),
  lookAt: z.array(text).describe('where an implementer should look, most likely cause first'),
  durationMs: z.number().optional().describe('what its probes took'),
  checks: count.describe('how many times it was held against an answer'),
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
    failure: count.optional().describe('which failure of the root shows it, where that is not the first'),
    behavesLike: z
      .array(likenessSchema)
      .describe('kinds of mistake that break the root, the most frequent first'),
  })
  .describe('findings of one cause');

const changesSchema = z.object({
  since: text.describe('when the earlier run began'),
  sameTarget: z.boolean(),
  newlyFailing: z.array(text),
  newlyPassing: z.array(text),
  noLongerExercised: z.array(text),
  changedObservations: z
    .array(text)
    .describe('what was seen before and now, where the specification is silent and nothing is alike'),
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
  summary: text.describe('one sentence: what the verdict rests on, or what would complete it'),
  basis: text.optional().describe('what broke first, where what depends on it could not be tested'),
  required: z
    .array(requirementClass)
    .optional()
    .describe('classes that had to be exercised in addition to core'),
  selection: z.array(text).optional().describe('the ids that the run was limited to; absent for a whole run'),
  coverage: z
    .object({
      deepestWalk: count.describe('screenings on the longest walk'),
      widestWindow: text.describe('the widest window that was served, from/to in UTC; empty where none was'),
      largestFullPage: count.describe('the largest page size of which a page was full; 0 where none was'),
      oldestTokenSeconds: count.optional().describe('how long ago the oldest accepted token had been issued'),
    })
    .describe('how far the run went'),
  classes: z.record(requirementClass, z.enum(['exercised', 'partly', 'untested'])),
  evidence: z
    .object({
      planned: count,
      executed: count,
      seen: numbers,
      laws: numbers.describe('how many cases each law saw'),
      notLookedAt: z
        .array(z.object({ rules: z.array(text), circumstances: z.array(text) }))
        .describe('circumstances, alone or in pairs, that rules were not asked in'),
    })
    .describe('probes and laws planned and executed, and what the run saw, by name'),
  diagnosis: z.array(diagnosisSchema).describe('what failed, by cause; empty where nothing did'),
  declared: z
    .array(z.object({ id: text, reason: text }))
    .optional()
    .describe('requirements that the target file declares impossible to exercise, which no class counts'),
  notes: z
    .array(text)
    .optional()
    .describe('what a reader must know of the run as a whole; none of it changes the verdict'),
  observations: z.array(observationSchema).describe('what was seen where the specification is silent'),
  replay: text.describe('the command that repeats this run'),
  tokenCommands: z.array(text).describe('fetch the tokens that the curl lines name'),
  requirements: z.array(requirementSchema).describe('all of them, in the order of the catalogue'),
  changes: changesSchema.optional().describe('with --baseline'),
  knownFailures: z.array(knownFailureSchema).optional().describe('with --known-failures'),
});

export type Status = z.infer<typeof statusSchema>;
export type Verdict = z.infer<typeof verdictSchema>;
export type RequirementResult = DeepReadonly<z.infer<typeof requirementSchema>>;
/** Observed behaviour where the specification is silent. */
export type Observation = DeepReadonly<z.infer<typeof observationSchema>>;
/** Findings with a common cause. */
export type Diagnosis = DeepReadonly<z.infer<typeof diagnosisSchema>>;
/** Differences from an earlier run: requirement ids in the order of the catalogue. */
export type Changes = DeepReadonly<z.infer<typeof changesSchema>>;
/** An expected failure; it does not change the verdict. */
export type KnownFailure = DeepReadonly<z.infer<typeof knownFailureSchema>>;
export type Report = DeepReadonly<z.infer<typeof reportSchema>>;
