/** Fixtures for tests of faults and variants, and servers without sockets. */
import { InProcess } from '../http/in-process.ts';
import { startServer, type ReferenceServer, type ServerOptions } from '../run/start.ts';
import type { World } from '../testing.ts';

export { test, type World } from '../testing.ts';

/** Starts a server without sockets on the screenings in memory; `dispatcher` passes requests to it. */
export async function startInProcess(
  { database, provisioned, store }: World,
  options: ServerOptions = {},
): Promise<ReferenceServer & { readonly dispatcher: InProcess }> {
  const dispatcher = new InProcess();
  const server = await startServer(database, provisioned, { store, ...options, inProcess: dispatcher });
  return { ...server, dispatcher };
}
