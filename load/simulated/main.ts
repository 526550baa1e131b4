/** The simulated server in a process of its own: settings as JSON in the argument, `{"port":N}` when it listens. */
import type { AddressInfo } from 'node:net';
import { createSimulatedServer, type SimulatedSettings } from './server.ts';

const server = createSimulatedServer(JSON.parse(process.argv[2] ?? '{}') as SimulatedSettings);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
});
// The parent's end closes standard input: never outlive it.
process.stdin.on('end', () => process.exit(0)).resume();
