/** The shape of report.json: the one source that every rendering is written from. */
import type { Level, RequirementClass, RequirementId } from '../fixtures/requirements.ts';

/** pass · fail: a MUST is broken · warn: a SHOULD is broken · untested: see reason · error: the kit went wrong. */
export type Status = 'pass' | 'fail' | 'warn' | 'untested' | 'error';

export type Verdict = 'conformant' | 'non-conformant' | 'incomplete';

/** One piece of evidence against the target. Text only, secrets and tokens already redacted. */
export interface Failure {
  /** `expected …, got …` */
  readonly message: string;
  /** `GET http://…` as it was sent; empty where no single request is to blame. */
  readonly request: string;
  /** `200 …`: the status and the telling part of the answer. */
  readonly response: string;
  /** Shows the failure from a shell, with $TOKEN in place of the token. */
  readonly curl: string;
  /** The smallest case that shows it, for laws: a script in words, seed and path. */
  readonly counterexample?: Readonly<Record<string, unknown>>;
  /** How often it was seen when asked again, such as `3 of 3` or `flaky, 1 of 3`. */
  readonly confirmed?: string;
  /** How many findings of the same kind this one stands for (1 where absent). */
  readonly count?: number;
}

export interface RequirementResult {
  readonly id: RequirementId;
  readonly section: string;
  readonly level: Level;
  readonly class: RequirementClass;
  readonly title: string;
  readonly status: Status;
  /** Why untested, and what to supply; what the kit tripped over. */
  readonly reason?: string;
  readonly lookAt: readonly string[];
  /** How many times the requirement was held against an answer. */
  readonly checks: number;
  readonly failures: readonly Failure[];
}

/** What was seen of a behaviour that the specification leaves open. */
export interface Observation {
  /** A short name such as `missing-from-code`. */
  readonly topic: string;
  readonly question: string;
  readonly seen: readonly string[];
}

export interface Report {
  readonly kit: { readonly name: string; readonly version: string };
  readonly target: { readonly name: string; readonly baseUrl: string; readonly authUrl: string };
  readonly startedAt: string;
  readonly durationMs: number;
  readonly requests: number;
  readonly seed: number;
  readonly verdict: Verdict;
  /** One sentence: what the verdict rests on, or what would complete it. */
  readonly summary: string;
  /** The basis that broke, once, where what depends on it could not be tested. */
  readonly basis?: string;
  /** The ids that the run was limited to (`--only`); absent for a whole run. */
  readonly selection?: readonly string[];
  readonly classes: Readonly<Record<RequirementClass, 'exercised' | 'partly' | 'untested'>>;
  /** Probes and laws planned and executed, and what the run saw, by name (such as `pages`, `longestWalkPages`). */
  readonly evidence: {
    readonly planned: number;
    readonly executed: number;
    readonly seen: Readonly<Record<string, number>>;
    /** How many cases each law saw. */
    readonly laws: Readonly<Record<string, number>>;
  };
  readonly observations: readonly Observation[];
  /** The command that repeats this run: `npm run certify -- …`. */
  readonly replay: string;
  /** The commands that fetch the tokens which the curl lines name; secrets are taken from the environment. */
  readonly tokenCommands: readonly string[];
  readonly requirements: readonly RequirementResult[];
}
