/** The outcome of a request, for access logs and metrics. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Outcome {
  readonly requestId: string;
  readonly method: string;
  /** As a handler sees it: it may hold anything. */
  readonly path: string;
  readonly status: number;
  /** Of the body; undefined where it was streamed. */
  readonly octets: number | undefined;
  readonly durationMs: number;
}

/** Told of every request that could be read as one. */
export type Observer = (outcome: Outcome) => void;

const REQUEST_ID = 'x-request-id';

/** The answer gets a request id, and the observer is told when it is out. */
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
