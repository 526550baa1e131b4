/** The context that the parts of a kit share. */
import type { Clock } from '../../clock.ts';
import type { Client } from '../../client/client.ts';
import type { Authorization, RequestOut } from '../../client/exchange.ts';
import type { ClientName, Target } from '../../target/target.ts';
import type { Knowledge } from './knowledge.ts';
import type { Ledger } from './ledger.ts';

export interface RunContext {
  readonly target: Target;
  readonly clock: Clock;
  readonly client: Client;
  readonly ledger: Ledger;
  readonly knowledge: Knowledge;
  /** Computes a shared value once per run, such as the survey. */
  once<T>(name: string, compute: () => Promise<T>): Promise<T>;
  /** The polling timeout for eventually consistent data, scaled by the options. */
  pollingMs(usualMs: number): number;
  /** The tenant of a client: from the target file, or from its token. */
  tenantOf(client: ClientName): Promise<string>;
  /** A request to the screenings path; the query is sent as given. */
  request(tenantId: string, query: string, authorization: Authorization): RequestOut;
}
