import type { Redactor } from '../engine/run/evidence/redact.ts';
import type { Report } from './report.ts';

/**
 * Returns the report without secrets. Values fixed by the kit (ids, statuses, classes, titles, hints) are not
 * redacted: a secret that equals a word such as `core` must not make the report unreadable.
 */
export function redactReport(report: Report, { redact, redactDeep }: Redactor): Report {
  const {
    kit,
    startedAt,
    verdict,
    selection,
    required,
    classes,
    requirements,
    evidence,
    diagnosis,
    ...texts
  } = report;
  return {
    ...redactDeep(texts, 'fixed'),
    ...{ kit, startedAt, verdict, classes },
    diagnosis: diagnosis.map(({ behavesLike, ...ids }) => ({
      ...ids,
      behavesLike: redactDeep(behavesLike, 'fixed'),
    })),
    ...(selection && { selection }),
    ...(required && { required }),
    evidence: { ...evidence, seen: redactDeep(evidence.seen), laws: redactDeep(evidence.laws) },
    requirements: requirements.map(({ reason, failures, ...fixed }) => ({
      ...fixed,
      ...(reason !== undefined && { reason: redact(reason) }),
      failures: failures.map(({ counterexample, ...failure }) => ({
        ...redactDeep(failure, 'fixed'),
        ...(counterexample && { counterexample: redactDeep(counterexample) }),
      })),
    })),
  };
}
