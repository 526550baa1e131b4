/** Conditions on requests, for faults and variants of those that meet them. */
import type { ServiceRequest } from '../http/http.ts';

/** Selects requests. */
export type Where = (request: ServiceRequest, query: URLSearchParams) => boolean;

/** Whether a header, or a query parameter, is there and matches. */
export const hasHeader =
  (name: string, value = /^/) =>
  ({ headers }: ServiceRequest): boolean =>
    headers[name] !== undefined && value.test(headers[name]);
export const hasParameter =
  (name: string, value = /^/): Where =>
  (_, query) =>
    query.has(name) && value.test(query.get(name)!);
export const not =
  <Asked extends unknown[]>(condition: (...asked: Asked) => boolean) =>
  (...asked: Asked): boolean =>
    !condition(...asked);
export const every =
  (...conditions: readonly Where[]): Where =>
  (...asked) =>
    conditions.every((holds) => holds(...asked));

export const isAfterCursor = hasParameter('from_id');
