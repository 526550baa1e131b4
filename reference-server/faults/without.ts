/** Requirements without a fault, each with the reason. */
import type { RequirementId } from '../../engine/requirements.ts';

export const WITHOUT_FAULT: Partial<Readonly<Record<RequirementId, string>>> = {};
