/** What every way to a PostgreSQL server gives. */

/** A PostgreSQL that goes down as in a crash, and comes back with all that it had committed. */
export interface Outage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** A PostgreSQL server that runs. */
export interface RunningPostgres {
  readonly url: string;
  /** For people: what it is and why it was taken. */
  readonly description: string;
  /** Absent where the server was not started here. */
  readonly outage?: Outage;
  stop(): Promise<void>;
}
