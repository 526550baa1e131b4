/** A failure that two requests show: the same answer was given to an earlier, different request. */
import type { Exchange } from '../../client/exchange.ts';

/** The earlier page with the same body whose request differs only in one parameter or in the path. */
export function sameAnswerBefore(
  exchange: Exchange | undefined,
  pages: readonly Exchange[],
): Exchange | undefined {
  if (!exchange || exchange.status !== 200 || exchange.request.method !== 'GET') return undefined;
  const asked = partsOf(exchange);
  return pages.find(
    (before) =>
      before.startedAtMs + before.durationMs <= exchange.startedAtMs &&
      differences(asked, partsOf(before)) === 1 &&
      before.text === exchange.text,
  );
}

function partsOf({ request }: Exchange): ReadonlyMap<string, string> {
  const { pathname, searchParams } = new URL(request.url);
  return new Map([['path', pathname.toLowerCase()], ...searchParams]);
}

const differences = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): number =>
  [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name)).length;
