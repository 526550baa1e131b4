/** A failure that needs two requests: the answer was given before, to a request that asked for something else. */
import type { Exchange } from '../../client/exchange.ts';

/** The earlier page with the same octets whose request differs in one parameter, or in the path alone. */
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
