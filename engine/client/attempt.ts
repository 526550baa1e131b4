import type { Exchange } from './exchange.ts';

/** The history of one request until its final answer. */
export class Attempt {
  /** The first server failure, if all its answers so far were failures. */
  failed?: Exchange;
  /** The lowest number of requests in flight with which it failed. */
  inFlight = Infinity;
  failures = 0;
  /** Other requests are served again: the next answer is final. */
  isLast = false;
  /** It alone hangs: no answer came in time, twice, although another request was answered in between. */
  hangs = false;
  /** Retries after the answer that was final. */
  elsewhere = 0;
  /** The first answer without a body (isWithoutBody), and how often the request was sent again for it. */
  withoutBody?: Exchange;
  bodyRetries = 0;
  throttles = 0;
  throttledMs = 0;
  lockouts = 0;
  /** How often it met a guard. */
  guards = 0;
}
