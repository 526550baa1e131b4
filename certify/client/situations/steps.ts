/** Building blocks for the servers of situations. */
import type { Clock } from '../../../engine/clock.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from '../../../reference-server/http/http.ts';
import { isScreenings, middleware, queryOf } from '../../../reference-server/run/alter.ts';
import type { ServerOptions } from '../../../reference-server/run/start.ts';
import { plain, WINDOW } from '../data.ts';
import type { StageOptions } from '../stage.ts';

/** The page size, whatever a client requests. */
const PAGE_SIZE = 10;

/** An ordinary server with plain screenings. */
export const usual = (server: StageOptions['server'] = {}, pages = 5): StageOptions => ({
  screenings: plain(pages * PAGE_SIZE - 4),
  window: WINDOW,
  pageSize: PAGE_SIZE,
  mostItems: PAGE_SIZE,
  server,
});

/** `page`: the number of the page in the walk; `attempt`: the number of requests for it. Both start at 1. */
type PageStep = (
  place: { readonly page: number; readonly attempt: number },
  request: ServiceRequest,
  next: Handler,
) => Promise<ServiceAnswer> | ServiceAnswer;

/** Calls a step for every GET of a page. `make` is called once per server. */
export const pageStep = (make: () => PageStep): ServerOptions =>
  middleware(() => {
    const step = make();
    const attempts = new Map<string, number>();
    return (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const query = queryOf(request);
      const place = `${query.get('from')} ${query.get('from_id')}`;
      const attempt = (attempts.get(place) ?? 0) + 1;
      attempts.set(place, attempt);
      return step({ page: [...attempts.keys()].indexOf(place) + 1, attempt }, request, next);
    };
  });

/** Delays every page. */
export const paced = (ms: number, clock: Clock): ServerOptions =>
  pageStep(() => async (_place, request, next) => {
    await clock.sleep(ms);
    return next(request);
  });
