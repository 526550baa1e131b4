/** Defences against guessing: after 40 rejected tokens within ten seconds the sender is rejected for a while. */
import { html as page, isScreenings, middleware, refusal, withHeader } from '../run/alter.ts';
import { type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import type { Variant } from './variant.ts';

const MAX_REJECTIONS = 40;
const WINDOW_MS = 10_000;
const BAN_MS = 2_000;

const guard = (
  name: string,
  refuse: () => ServiceAnswer,
  whose: (request: ServiceRequest) => string = () => 'address',
): Variant => ({
  name,
  server: middleware(() => {
    const senders = new Map<string, { rejectedAtMs: number[]; untilMs: number }>();
    return async (request, next) => {
      if (!isScreenings(request)) return next(request);
      const kept = senders.get(whose(request)) ?? { rejectedAtMs: [], untilMs: 0 };
      senders.set(whose(request), kept);
      if (Date.now() < kept.untilMs) return refuse();
      const answer = await next(request);
      if (answer.status !== 401) return answer;
      kept.rejectedAtMs = [...kept.rejectedAtMs.filter((atMs) => atMs > Date.now() - WINDOW_MS), Date.now()];
      if (kept.rejectedAtMs.length >= MAX_REJECTIONS)
        senders.set(whose(request), { rejectedAtMs: [], untilMs: Date.now() + BAN_MS });
      return answer;
    };
  }),
});

const blocked = (): ServiceAnswer => page(403, '403 Forbidden');

/** Closes the connection before the first byte of an answer. */
const reset = (): ServiceAnswer => ({
  status: 200,
  headers: [],
  body: (async function* () {
    yield* [];
    throw new Error('refused by the guard');
  })(),
});

const tenantOf = ({ path }: ServiceRequest): string =>
  /tenants\/([^/]+)/.exec(path)?.[1]?.toLowerCase() ?? '';

export const html: readonly Variant[] = [guard('40 refused tokens in ten seconds: 403 with HTML', blocked)];
export const resets: readonly Variant[] = [
  guard('40 refused tokens in ten seconds: connections close', reset),
];
export const throttles: readonly Variant[] = [
  guard('40 refused tokens in ten seconds: 429', () =>
    withHeader(refusal('429 rate_limited'), 'retry-after', '2'),
  ),
];
export const perTenant: readonly Variant[] = [
  guard('40 refused tokens in ten seconds on the path of a tenant: 403 with HTML there', blocked, tenantOf),
];
