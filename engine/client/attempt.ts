import type { Exchange } from './exchange.ts';

/** The history of one request until its final answer. */
export interface Attempt {
  /** The first server failure, if all its answers so far were failures. */
  failed?: Exchange;
  /** The lowest number of requests in flight with which it failed. */
  inFlight: number;
  failures: number;
  /** Other requests are served again: the next answer is final. */
  isLast: boolean;
  /** It alone hangs: no answer came in time, twice, although another request was answered in between. */
  hangs: boolean;
  /** Retries after the answer that was final. */
  elsewhere: number;
  /** The first answer without a body (isWithoutBody), and how often the request was sent again for it. */
  withoutBody?: Exchange;
  bodyRetries: number;
  throttles: number;
  throttledMs: number;
  lockouts: number;
  /** How often it met a guard. */
  guards: number;
}

export const newAttempt = (): Attempt => ({
  inFlight: Infinity,
  failures: 0,
  isLast: false,
  hangs: false,
  elsewhere: 0,
  bodyRetries: 0,
  throttles: 0,
  throttledMs: 0,
  lockouts: 0,
  guards: 0,
});
