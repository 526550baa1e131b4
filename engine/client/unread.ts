/** Requests without a readable answer: it did not come in time, or is larger than the kit reads. */
import { isTimeout, isUnread, type Exchange } from './exchange.ts';

const MOST_IN_A_ROW = 2;
const MOST = 8;
/** The same if only some requests hang: enough for the errors of section 7.1, each of which takes two. */
const MOST_HANGS = 24;

export class UnreadAnswers {
  /** Whether some requests hang although others are answered. */
  someHang = false;
  private inARow = 0;
  private total = 0;
  private untilMs = 0;

  constructor(private readonly timeoutMs: number) {}

  /**
   * Notes an answer; true if the run is to end. `canTryAnother`: another request shows first whether the target is gone.
   * A page with too many items is a finding, which needs its confirmation.
   */
  isEnough(exchange: Exchange, canTryAnother: boolean): boolean {
    const { startedAtMs, durationMs } = exchange;
    if (!isUnread(exchange)) this.inARow = 0;
    // Requests in flight at the same time met the same failure.
    if (!isUnread(exchange) || startedAtMs < this.untilMs) return false;
    this.untilMs = startedAtMs + durationMs;
    this.total++;
    this.inARow++;
    const isFinding = exchange.transportError?.kind === 'too-many-items';
    const waits = isFinding || (isTimeout(exchange) && canTryAnother);
    return this.total >= (this.someHang ? MOST_HANGS : MOST) || (this.inARow >= MOST_IN_A_ROW && !waits);
  }

  /** A request hung twice although another one was answered in between. */
  noteHang(): void {
    this.someHang = true;
    this.inARow = 0;
  }

  say({ request, transportError }: Exchange): string {
    const { origin, pathname } = new URL(request.url);
    const requests = `${this.total} ${this.total === 1 ? 'request' : 'requests'}`;
    const times = `(${requests}, the last one ${request.method} ${pathname}`;
    const { kind, message } = transportError!;
    return kind === 'timeout'
      ? `${origin} does not answer within ${this.timeoutMs / 1000} s ${times}; --timeout gives it longer)`
      : `${origin}: ${message} ${times})`;
  }
}
