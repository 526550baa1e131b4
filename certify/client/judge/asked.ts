/** Whether a walk followed the URLs that it was given (section 4.2, rule 5). */
import { queryOf } from '../../../reference-server/run/alter.ts';
import { compareInstants, parseInstant } from '../../../engine/data/instant.ts';
import { isStart, line, pageRequests, normalized, type Recorded } from '../record.ts';
import type { ClientFailure } from '../report.ts';
import { finding, type Play } from '../situation.ts';

/** Allows retries, concurrent walks, and equivalent spellings of a URL. */
export function followFindings({ requests }: Play): ClientFailure[] {
  const given = new Map<string, string>();
  let before: Recorded | undefined;
  for (const request of pageRequests(requests)) {
    const asked = normalized(request.request.path);
    if (!given.has(asked)) {
      const wrong = isStart(request) ? restart(request, before) : rebuilt(request, before);
      if (wrong) return [wrong];
    }
    if (request.page?.next !== undefined) {
      given.set(normalized(request.page.next), request.page.next);
      before = request;
    }
  }
  return [];
}

const pathOf = (url: string): string => url.replace(/^[a-z]+:\/\/[^/]+/i, '');

function rebuilt(request: Recorded, before: Recorded | undefined): ClientFailure {
  const next = before?.page?.next;
  return next === undefined
    ? finding('a walk that begins with from and to', 'a from_id of the client’s own', [line(request)])
    : finding(
        `next to be followed as given: ${pathOf(next)}`,
        `another URL: ${differences(next, request.request.path)}`,
        [line(before!), line(request)],
      );
}

/** How the client's URL differs from `next`, in words. */
function differences(next: string, asked: string): string {
  const [given, own] = [next, asked].map((url) => queryOf({ path: pathOf(url) } as never)) as [
    URLSearchParams,
    URLSearchParams,
  ];
  const names = [...new Set([...given.keys(), ...own.keys()])];
  const words = names.flatMap((name) => {
    if (!own.has(name)) return [`${name} left out`];
    if (!given.has(name)) return [`${name} added`];
    return given.get(name) === own.get(name) ? [] : [`${name} changed to ${own.get(name)}`];
  });
  return words.join(', ') || pathOf(asked);
}

/** A new query from where a page ended, instead of following `next`. */
function restart(request: Recorded, before: Recorded | undefined): ClientFailure | undefined {
  const from = parseInstant(queryOf(request.request).get('from') ?? '');
  const last = parseInstant(before?.page?.lastTestTime ?? '');
  if (!from || !last || !before?.page?.next) return undefined;
  const after = compareInstants(from, last) >= 0;
  // A window that happens to start later is another walk.
  const near = Number(from.seconds - last.seconds) <= 1;
  if (!after || !near) return undefined;
  return finding(
    `next to be followed as given: ${pathOf(before.page.next)}`,
    `a new query from the last testTime without from_id, which loses or repeats ties`,
    [line(before), line(request)],
  );
}
