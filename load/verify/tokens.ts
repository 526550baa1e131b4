/** `verify tokens`: short-lived tokens over a long run; no 401, and few token calls (section 5.6). */
import { startSimulatedServer } from '../simulated/start.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession } from './session.ts';

export interface TokensOutcome {
  readonly lifetimeSeconds: number;
  readonly seconds: number;
  readonly vus: number;
  readonly pages: number;
  readonly tokens: number;
  /** A token a VU and three quarters of a lifetime, one for the setup, one for the look before. */
  readonly bound: number;
  readonly unauthenticated: number;
}

export async function verifyTokens(
  k6: string,
  lifetimeSeconds: number,
  seconds: number,
  vus = 3,
): Promise<TokensOutcome> {
  await using server = await startSimulatedServer({ tokenLifetimeSeconds: lifetimeSeconds });
  const session = await openSession(k6, server.target(), { pageSize: 10 });
  // Once: what a busy machine makes void is void for latencies, not for counts of tokens.
  await session.tryArrivals(20, seconds, { vus }, 0);
  const { tokens, pages, unauthenticated } = await server.counts();
  const bound = 2 + vus * Math.ceil(seconds / (lifetimeSeconds * 0.75));
  return { lifetimeSeconds, seconds, vus, pages, tokens, bound, unauthenticated };
}

export function tokensTable(outcome: TokensOutcome): { text: string; ok: boolean } {
  const { lifetimeSeconds, seconds, vus, pages, tokens, bound, unauthenticated } = outcome;
  const text = textTable(
    ['token lives', 'run', 'VUs', 'pages', 'token calls', 'at most', '401'],
    [[`${lifetimeSeconds} s`, `${seconds} s`, vus, pages, tokens, bound, unauthenticated]],
  );
  return { text, ok: unauthenticated === 0 && tokens <= bound && pages > 0 };
}
