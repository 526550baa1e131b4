/** What a scenario is: an entry of its own file, listed in all.ts. */
import type { Option } from 'commander';
import type { LoadResult } from '../result.ts';
import type { Window } from '../k6/lib/window.ts';
import type { Session } from '../run/session.ts';
import type { ScenarioOptions } from './flags.ts';

export interface Scenario {
  readonly about: string;
  /** Besides what every scenario takes. */
  readonly flags: readonly Option[];
  /** Where it asks; absent: where screenings lie, which takes some thirty requests to find. */
  readonly window?: Window;
  /** The script that is the whole run, where one is: several runners may share it. */
  readonly script?: string;
  /** Throws VoidRun where the run says nothing about the target. */
  readonly run: (session: Session, options: ScenarioOptions) => Promise<Partial<LoadResult>>;
}
