/** The shape of report.json: the one source that every rendering is written from. */
import type { Failure } from '../fixtures/run/evidence.ts';
import type { Level, RequirementClass, RequirementId } from '../fixtures/requirements.ts';

export type { Failure };

/** pass · fail: a MUST is broken · warn: a SHOULD is broken · untested: see reason · error: the kit went wrong. */
export type Status = 'pass' | 'fail' | 'warn' | 'untested' | 'error';

export type Verdict = 'conformant' | 'non-conformant' | 'incomplete';

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
  /** What its probes took. */
  readonly durationMs?: number;
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

/** Against an earlier run: requirement ids in the order of the catalogue. */
export interface Changes {
  /** When the earlier run began. */
  readonly since: string;
  readonly sameTarget: boolean;
  readonly newlyFailing: readonly string[];
  readonly newlyPassing: readonly string[];
  readonly noLongerExercised: readonly string[];
}

/** A failure that was noted beforehand; it changes no verdict. */
export interface KnownFailure {
  readonly id: string;
  readonly reason: string;
  /** The last day, as in 2026-12-31. */
  readonly expires: string;
  readonly stand: 'failing' | 'passes again' | 'expired' | 'not exercised';
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
  /** The classes that had to be exercised beside core (`--require`, `require` in the target file). */
  readonly required?: readonly RequirementClass[];
  /** The ids that the run was limited to (`--only`); absent for a whole run. */
  readonly selection?: readonly string[];
  /** How far the run went. */
  readonly coverage: {
    /** Screenings on the longest walk. */
    readonly deepestWalk: number;
    /** The widest window that was served, `from/to` in UTC; empty where none was. */
    readonly widestWindow: string;
    /** The largest page size of which a page was full; 0 where none was. */
    readonly largestFullPage: number;
  };
  readonly classes: Readonly<Record<RequirementClass, 'exercised' | 'partly' | 'untested'>>;
  /** Probes and laws planned and executed, and what the run saw, by name (such as `pages`, `longestWalkPages`). */
  readonly evidence: {
    readonly planned: number;
    readonly executed: number;
    readonly seen: Readonly<Record<string, number>>;
    /** How many cases each law saw. */
    readonly laws: Readonly<Record<string, number>>;
    /** Circumstances, alone or in pairs, that rules were not asked in; empty where all pairs were. */
    readonly notLookedAt: readonly {
      readonly rules: readonly string[];
      readonly circumstances: readonly string[];
    }[];
  };
  readonly observations: readonly Observation[];
  /** The command that repeats this run: `npm run certify -- …`. */
  readonly replay: string;
  /** The commands that fetch the tokens which the curl lines name; secrets are taken from the environment. */
  readonly tokenCommands: readonly string[];
  readonly requirements: readonly RequirementResult[];
  /** With `--baseline`. */
  readonly changes?: Changes;
  /** With `--known-failures`. */
  readonly knownFailures?: readonly KnownFailure[];
}
