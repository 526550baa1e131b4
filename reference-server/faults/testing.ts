/** Fixtures of the fault and variant tests, and servers without sockets. */
import { InProcess } from '../http/in-process.ts';
import { startServer, type ReferenceServer, type ServerOptions } from '../run/start.ts';
import type { World } from '../testing.ts';

export { test, type World } from '../testing.ts';

/** A server without sockets, over the screenings in memory: `dispatcher` takes requests to it. */
export async function startInProcess(
  { database, provisioned, store }: World,
  options: ServerOptions = {},
): Promise<ReferenceServer & { readonly dispatcher: InProcess }> {
  const dispatcher = new InProcess();
  const server = await startServer(database, provisioned, { store, ...options, inProcess: dispatcher });
  return { ...server, dispatcher };
}
