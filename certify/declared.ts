/** Requirements that the target file declares not applicable: they stay untested, with the reason. */
import type { Target } from '../engine/target/target.ts';
import type { Report, RequirementResult } from './report.ts';

type Declared = NonNullable<Report['declared']>;

const CLIENTS = [
  ['notOnboarded', '7.2-not_found'],
  ['unauthorized', '7.1-unauthorized_client'],
  ['invalidGrant', '7.1-invalid_grant'],
] as const;

export const declaredBy = ({ notApplicable = {} }: Pick<Target, 'notApplicable'>): Declared =>
  CLIENTS.flatMap(([name, id]) => {
    const reason = notApplicable[name];
    return reason === undefined ? [] : [{ id, reason }];
  });

/** Adds the reason; a requirement that was tested anyway counts like any other. */
export function asDeclared(result: RequirementResult, declared: Declared): RequirementResult {
  const reason = reasonOf(result, declared);
  return reason === undefined
    ? result
    : { ...result, reason: `declared not applicable by the target file: ${reason}` };
}

export const counts =
  (declared: Declared) =>
  (result: RequirementResult): boolean =>
    reasonOf(result, declared) === undefined;

const reasonOf = ({ id, status }: RequirementResult, declared: Declared): string | undefined =>
  status === 'untested' ? declared.find((one) => one.id === id)?.reason : undefined;
