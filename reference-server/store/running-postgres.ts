/** The interface of a PostgreSQL server, however it was started. */

/** Ends PostgreSQL like a crash, and starts it again with all committed data. */
export interface Outage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

export interface RunningPostgres {
  readonly url: string;
  /** For log lines: its kind, and why it was chosen. */
  readonly description: string;
  /** Absent if this process did not start the server. */
  readonly outage?: Outage;
  stop(): Promise<void>;
}
