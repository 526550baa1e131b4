/** Faults that affect one answer in many. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceAnswer } from '../http/http.ts';
import { isScreenings, middleware, nextOf, pages, refusal, withoutLink } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, sharing, type Fault } from './fault.ts';
import { brokenBody } from './rest-errors.ts';

const rareFaults = sharing({ mayTrip: [...PAGES, '7.2-body', '7.2-server-error'] });

/** Replaces every 25th answer of the screenings path. */
const everyTwentyFifth = (answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (isScreenings(request) && (asked += 1) % 25 === 15 ? answer() : next(request));
  });

export const intermittent: readonly Fault[] = [
  ...rareFaults({ '4.2-r4-order': /ascending/ })({
    'one page in fifty with its first two items changed round': pages((page, _, number) => {
      const [first, second] = page.items;
      if (number % 50 === 17 && first && second) page.items.splice(0, 2, second, first);
    }),
  }),
  ...rareFaults({ '4.2-r7-link': /Link header/ })({
    'one page in fifty without its Link header': (() => {
      let seen = 0;
      return pages((page) => {
        if (nextOf(page) && page.items.length > 0 && (seen += 1) % 50 === 21) withoutLink(page);
      });
    })(),
  }),
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /500 .*requests in flight, each time/ },
    { needsNeighbours: true },
  )({
    'more than six requests at the same time exhaust the connections: 500': middleware(() => {
      let inFlight = 0;
      return async (request, next) => {
        if (!isScreenings(request)) return next(request);
        try {
          const isExhausted = ++inFlight > 6;
          await sleep(20);
          return isExhausted ? refusal('500 internal_error') : await next(request);
        } finally {
          inFlight--;
        }
      };
    }),
  }),
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /no 5xx.*503/ },
    { needsNeighbours: true },
  )({
    'one answer in twenty-five is 503': everyTwentyFifth(() => refusal('503 service_unavailable')),
  }),
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /broken connection/ },
    { needsNeighbours: true },
  )({
    'one answer in twenty-five breaks off in its middle': everyTwentyFifth(() => ({
      status: 200,
      headers: [['content-type', 'application/json']],
      body: brokenBody(),
    })),
  }),
];
