/** `verify connecting`, `connections`, `freezes` and `scope`: what a run with k6 has to see of real servers. */
import { connect, createServer, type AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates, secured } from '../../certify/client/certificates.ts';
import type { Listener } from '../../reference-server/http/http.ts';
import { quantile } from '../estimate/queue.ts';
import { isLate } from '../estimate/step.ts';
import { randomSource } from '../k6/lib/random.ts';
import { rateLimit } from '../scenarios/rate-limit.ts';
import { startSimulatedServer } from '../simulated/start.ts';
import { openSession, OPTIONS } from './session.ts';
import type { TruthRow } from './truth-table.ts';

export const SEEN_WITH_K6 = ['connecting', 'connections', 'freezes', 'scope'] as const;
export type SeenWithK6 = (typeof SEEN_WITH_K6)[number];

export async function verifySeen(
  what: SeenWithK6,
  { servers, seed, k6, tell }: { servers: number; seed: number; k6: string; tell: (line: string) => void },
): Promise<TruthRow[]> {
  const random = randomSource(seed * 271);
  const rows: TruthRow[] = [];
  for (let index = 0; index < servers; index += 1) {
    const row = await DRAW[what](random, k6, seed + index);
    rows.push(row);
    tell(`${row.server}: truth ${row.truth}, found ${row.found}`);
  }
  return rows;
}

const SLO = { p99Ms: 2000, errorRate: 0.001 };

const DRAW: Readonly<
  Record<SeenWithK6, (random: () => number, k6: string, seed: number) => Promise<TruthRow>>
> = {
  connecting: async (random, k6, seed) => {
    const [handshakeMs, serviceMs] = [100 + Math.round(600 * random()), 5 + Math.round(25 * random())];
    const service = { workers: 64, serviceMs, distribution: 'deterministic' } as const;
    await using server = await startSimulatedServer({ service, closeEach: true });
    await using front = await slowHandshakes(Number(new URL(server.baseUrl).port), handshakeMs);
    const target = { ...server.target(), baseUrl: front.origin, authUrl: front.origin, ca: front.file };
    const session = await openSession(k6, target, { pageSize: 10, slo: SLO, seed });
    const { samples, void: why } = await session.tryArrivals(8, 6);
    const p50 = quantile(
      samples.map((one) => one.latencyMs).sort((a, b) => a - b),
      0.5,
    );
    const truth = handshakeMs + serviceMs;
    const error = p50 / truth - 1;
    return {
      server: `a handshake of ${handshakeMs} ms for each page of ${serviceMs} ms`,
      truth: `${truth} ms`,
      found: `${p50.toFixed(0)} ms`,
      error,
      // A busy machine adds to it; it never takes the handshake away.
      verdict: error > -0.05 && error < 0.25 ? 'right' : why || error > 0 ? 'undecided' : 'wrong',
    };
  },
  connections: async (random, k6, seed) => {
    const most = 4 + Math.floor(28 * random());
    const service = { workers: 256, serviceMs: 150, distribution: 'deterministic' } as const;
    await using server = await startSimulatedServer({ service, maxConnections: most });
    const session = await openSession(k6, server.target(), { pageSize: 10, slo: SLO, seed });
    await session.tryArrivals(most * 12, 4);
    const { accepted, refused } = session.connections;
    const told = Number.isFinite(refused);
    return {
      server: `at most ${most} connections`,
      truth: String(most),
      found: told ? `${accepted} accepted, ${refused} not` : 'no limit seen',
      ...(told ? { error: accepted / most - 1 } : {}),
      verdict: told && accepted <= most && refused > most ? 'right' : told ? 'wrong' : 'undecided',
    };
  },
  freezes: async (random, k6, seed) => {
    const [fromSeconds, forSeconds] = [4 + 4 * random(), 5 + 5 * random()];
    await using server = await startSimulatedServer({ freeze: { fromSeconds, forSeconds } });
    const session = await openSession(k6, server.target(), {
      pageSize: 10,
      slo: SLO,
      timeoutSeconds: 20,
      seed,
    });
    const { samples } = await session.tryArrivals(12, 22, { vus: 300 }, 0, 'soak');
    const late = samples.filter((one) => isLate(one, SLO)).length;
    // It begins with the first page; who is due less than the SLO before its end is not late.
    const fromMs = samples[0]!.dueMs + fromSeconds * 1000;
    const untilMs = fromMs + forSeconds * 1000 - SLO.p99Ms;
    const truth = samples.filter((one) => one.dueMs >= fromMs && one.dueMs < untilMs).length;
    return {
      server: `a freeze of ${forSeconds.toFixed(1)} s`,
      truth: `${truth} late`,
      found: `${late} late, the slowest ${(Math.max(...samples.map((one) => one.latencyMs)) / 1000).toFixed(1)} s`,
      error: late / truth - 1,
      verdict: Math.abs(late / truth - 1) < 0.1 ? 'right' : 'wrong',
    };
  },
  scope: async (random, k6, seed) => {
    const limit = 20 + Math.floor(40 * random());
    const sharedLimiter = random() < 0.5;
    const limiter = { kind: 'fixed-window', limit, windowMs: 2000, phaseMs: 2000 * random() } as const;
    await using server = await startSimulatedServer({ limiter, sharedLimiter, clients: 2 });
    const session = await openSession(k6, server.target(), { seed }, rateLimit);
    const found = await rateLimit.run(session, { ...OPTIONS, maxRequests: 2000, maxSeconds: 60 });
    const truth = sharedLimiter ? 'shared' : 'client';
    const scope = found.limiter?.scope;
    return {
      server: `${limit} in 2 s, two clients`,
      truth,
      found: scope ?? 'not told',
      verdict: scope === truth ? 'right' : scope ? 'wrong' : 'undecided',
    };
  },
};

/** TLS in front of a server: the first bytes of each connection wait. */
async function slowHandshakes(port: number, handshakeMs: number) {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-handshake-'));
  const { ours } = await makeCertificates(directory);
  const inner = await secured({ port, stop: async () => {} } as Listener, ours);
  const slow = createServer((socket) => {
    const onward = connect(inner.port, '127.0.0.1');
    socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    onward.pipe(socket);
    setTimeout(() => socket.pipe(onward), handshakeMs);
  });
  await new Promise<void>((done) => slow.listen(0, '127.0.0.1', done));
  return {
    origin: `https://127.0.0.1:${(slow.address() as AddressInfo).port}`,
    file: ours.file,
    async [Symbol.asyncDispose]() {
      slow.close();
      await inner.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
