/** The outcome of a request, for access logs and metrics. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

interface Outcome {
  readonly requestId: string;
  readonly method: string;
  /** Path and query as the handler gets them; not validated. */
  readonly path: string;
  readonly status: number;
  /** Length of the body; undefined if it was streamed. */
  readonly octets: number | undefined;
  readonly durationMs: number;
}

/** Called for every request that could be parsed. */
export type Observer = (outcome: Outcome) => void;

const REQUEST_ID = 'x-request-id';

/** Adds a request id to the answer, and calls the observer when the answer was sent. */
export function observe(
  observer: Observer,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  startedAt: number,
): void {
  const given = request.headers[REQUEST_ID];
  const requestId = typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : randomUUID();
  response.setHeader(REQUEST_ID, requestId);
  response.once('close', () => {
    const length = response.getHeader('content-length');
    observer({
      requestId,
      method: request.method ?? 'GET',
      path,
      status: response.statusCode,
      octets: length === undefined ? undefined : Number(length),
      durationMs: performance.now() - startedAt,
    });
  });
}
