/** Judges the answers that k6 recorded, with all of the kit's observers of a single answer and exact ids. */
import { answerObservers } from '../../engine/checks/answers.ts';
import { coverageObservers } from '../../engine/checks/coverage.ts';
import { errorObservers } from '../../engine/checks/errors.ts';
import { sayMismatch, type Observer } from '../../engine/checks/mismatch.ts';
import { nextObservers } from '../../engine/checks/next.ts';
import { pageObservers } from '../../engine/checks/page.ts';
import { exchangeOf, type Exchange } from '../../engine/client/exchange.ts';
import { Oracle } from '../../engine/data/oracle.ts';
import type { RequirementId } from '../../engine/requirements.ts';
import type { Target } from '../../engine/target/target.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { TOKEN, type SampleRecord } from '../k6/lib/record.ts';

/** Failures are counted and compared with the SLO instead: load may have caused them. */
const COUNTED: readonly RequirementId[] = ['7.2-no-unprovoked-5xx'];

const noOracle = (): undefined => undefined;
/** For tenants whose screenings are unknown; still finds an item that occurs twice on a page. */
const nothing = new Oracle(false);

export class Judge {
  readonly #observers: readonly Observer[];
  readonly #stored = new Map<string, Oracle>();
  readonly #coverage = coverageObservers((tenantId) => this.#stored.get(tenantId.toLowerCase()));
  /** Number of pages that were compared with the stored screenings, and the mismatches. */
  comparedPages = 0;
  readonly storedMismatches: Finding[] = [];

  constructor(target: Target) {
    this.#observers = [
      ...pageObservers(noOracle),
      // A target that reads a raw + as a blank rejects the next page, which counts as failed.
      ...nextObservers(target, noOracle, { keepsRawPlus: true }),
      ...errorObservers(target.errorCodePointer),
      ...coverageObservers(() => nothing),
      ...answerObservers(target, new Set([TOKEN])),
    ].filter(({ id }) => !COUNTED.includes(id));
  }

  /** From now on, pages of this tenant must match these stored screenings. */
  know(tenantId: string, stored: Oracle): void {
    this.#stored.set(tenantId.toLowerCase(), stored);
  }

  judge(sample: SampleRecord): Finding[] {
    const exchange = exchangeFrom(sample);
    if (this.#stored.size > 0 && exchange.status === 200) {
      this.comparedPages += 1;
      this.storedMismatches.push(...found(this.#coverage, exchange));
    }
    return found(this.#observers, exchange);
  }
}

function found(observers: readonly Observer[], exchange: Exchange): Finding[] {
  const { request, status } = exchange;
  return observers.flatMap(({ id, applies, judge }) => {
    const mismatch = applies(exchange) ? judge(exchange) : undefined;
    return mismatch
      ? [{ id, message: sayMismatch(mismatch), request: `GET ${request.url}`, response: String(status) }]
      : [];
  });
}

const exchangeFrom = ({ url, followed, status, headers, body }: SampleRecord): Exchange =>
  exchangeOf({
    seq: 0,
    request: {
      ...{ channel: 'rest', method: 'GET', url, headers: {}, followed },
      authorization: { kind: 'client', client: 'primary' },
    },
    status,
    headers: Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    text: body,
    startedAtMs: 0,
    durationMs: 0,
  });
