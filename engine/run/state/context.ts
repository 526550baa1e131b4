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
  /** Computes a shared basis once: what several probes look at, such as the survey. */
  once<T>(name: string, compute: () => Promise<T>): Promise<T>;
  /** How long something is waited for that may show late. */
  pollingMs(usualMs: number): number;
  /** The tenant that a client is provisioned for: as the target file says, else as its token says. */
  tenantOf(client: ClientName): Promise<string>;
  /** A request to the screenings path, with the query as it is to stand on the wire. */
  request(tenantId: string, query: string, authorization: Authorization): RequestOut;
}
