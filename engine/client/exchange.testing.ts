/** Exchanges for tests. */
import { exchangeOf, type Exchange, type RequestOut } from './exchange.ts';

/** A GET without a token. */
export const getOf = (url: string): RequestOut => ({
  channel: 'rest',
  method: 'GET',
  url,
  headers: {},
  authorization: { kind: 'none' },
});

export const answerTo = (request: RequestOut, text: string, status = 200, startedAtMs = 0): Exchange =>
  exchangeOf({ seq: 1, request, status, headers: [], text, startedAtMs, durationMs: 1 });
