/** Throughput of the reference server's pages and tokens, compared with other servers on the same data. */
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { pageUrl } from '../../engine/client/page.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import { openDatabase } from '../../reference-server/store/database.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { PAGE, storeScreenings } from '../../reference-server/store/store.ts';
import { mint } from '../run/target.ts';
import { startChild, startReference } from '../../reference-server/command/child.ts';
import { measureThroughput, get, pgbench, type Cursor, post } from './peers.ts';
import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { median } from '../estimate/numbers.ts';

const SCREENINGS = 1_000_000;
const SMALL = 10_000;
const [ROUNDS, SECONDS] = [5, 1.5];
const CURSORS = 500;
const SCHEMA = 'bench';
/** The servers of contender.ts. */
const PEERS = ['bare', 'offset', 'first', 'constant'];

/** A row of bench.json. */
export type Row = ReturnType<typeof rowOf>;

/** By default, the goal is a lower bound. */
export function rowOf(
  name: string,
  exact: number,
  goal: number,
  detail: Readonly<Record<string, number>>,
  isReached = (ratio: number): boolean => ratio >= goal,
) {
  const ratio = Number(exact.toFixed(3));
  return { name, ratio, goal, reached: isReached(ratio), detail };
}

export type Tell = (line: string) => void;

export async function serviceRows(tell: Tell): Promise<Row[]> {
  await using embedded = await openDatabase('embedded');
  const shared = new URL(embedded.url);
  shared.search = '';
  await using database = await openDatabase({ url: shared.href }, SCHEMA);
  const connections = database.connect();

  /** Stores a tenant's screenings; returns random cursors in them. */
  async function fill(tenantId: string, count: number, idOffset: bigint): Promise<Cursor[]> {
    const screenings = generateScreenings({ tenantId, count, seed: 1, bigIds: false, idOffset });
    await storeScreenings(connections, screenings);
    // No cursor in the last 1001 screenings, so that every page is full.
    return connections.query<Cursor & Record<string, unknown>>({
      text: `SELECT at::text, id::text, (n - 1)::int AS offset
           FROM (SELECT at, id, row_number() OVER (ORDER BY at, id) AS n FROM screening WHERE tenant = $1) placed
           WHERE n <= $2 - 1001 ORDER BY random() LIMIT ${CURSORS}`,
      values: [tenantId, count],
    });
  }

  tell(`${SCREENINGS} screenings are stored`);
  const cursors = await fill(TENANTS.primary, SCREENINGS, 0n);
  const smallCursors = await fill(TENANTS.secondTenant, SMALL, 500_000_000n);
  await connections.query({ text: 'VACUUM ANALYZE screening' });
  await connections.stop();

  const env = { DATABASE_URL: shared.href };
  await using running = await startReference(['--screenings', '1', '--keep', SCHEMA], { tell, env });
  const target = await resolveTarget(running.target, { label: 'reference server' });
  const contender = new URL('contender.ts', import.meta.url);
  await using peers = await startChild(contender, [database.url, TENANTS.primary]);
  const port = Number(new URL(target.baseUrl).port);
  const { primary } = target.clients;

  async function own(client: 'primary' | 'secondTenant', some: readonly Cursor[]) {
    const token = await mint(target, client);
    return (size: number): Measure => {
      const request = ({ at, id }: Cursor): string => {
        const query = { from: instantOf(at), to: '9000-01-01T00:00:00Z', pageSize: size, fromId: BigInt(id) };
        return get(pageUrl('', TENANTS[client], query), token);
      };
      return () => measureThroughput(port, () => request(pick(some)), SECONDS);
    };
  }
  const peer = (kind: string, size: number): Measure => {
    const request = ({ at, id, offset }: Cursor): string =>
      get(`/${kind}?${new URLSearchParams({ at, id, offset: String(offset), size: String(size) })}`);
    return () => measureThroughput(Number(peers.line), () => request(pick(cursors)), SECONDS);
  };
  const ordered = [...cursors].sort((a, b) => a.offset - b.offset);
  const tenth = Math.ceil(ordered.length / 10);
  const all = await own('primary', cursors);
  const begin = await own('primary', ordered.slice(0, tenth));
  const end = await own('primary', ordered.slice(-tenth));
  const small = await own('secondTenant', smallCursors);

  async function pageRows(size: number): Promise<Row[]> {
    const some = cursors.slice(0, 64);
    const measures = {
      ...{ own: all(size), begin: begin(size), end: end(size), small: small(size) },
      pgbench: () => pgbench(database.url, PAGE.afterScreening, TENANTS.primary, some, size, SECONDS),
      ...Object.fromEntries(PEERS.map((kind) => [kind, peer(kind, size)])),
    };
    const rate = await measureMedians(measures, { tell });
    const detail = { screenings: SCREENINGS, pageSize: size, connections: 8, rounds: ROUNDS };
    const against = (name: string, other: string, goal: number, one = 'own'): Row[] =>
      rowAtLeast(`pages of ${size}${name}`, rate(one), rate(other), goal, detail);
    return [
      ...against(' against pgbench with the same query', 'pgbench', size < 1_000 ? 0.35 : 0.5),
      ...against(' against node:http with pg, nothing checked', 'bare', 0.7),
      ...against(' against OFFSET', 'offset', 5),
      ...against(' against what is written first (objects, JSON.stringify, express)', 'first', 5),
      ...against(' against node:http with constant octets', 'constant', 0.15),
      ...against(': the last tenth against the first', 'begin', 1 / 1.2, 'end'),
      ...against(`: ${SCREENINGS} screenings against 10000`, 'small', 1 / 1.2),
    ];
  }
  return [
    ...(await pageRows(100)),
    ...(await pageRows(1_000)),
    ...(await tokenRow(port, primary, tell)),
    await guessRow(port, primary.clientId),
  ];
}

type Credentials = Target['clients']['primary'];
type Measure = () => Promise<number | undefined>;

const tokenForm = (client: Credentials): URLSearchParams =>
  new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret,
    scope: 'screenings.read',
  });

const pick = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)]!;

function instantOf(at: string): string {
  const [whole = '0', fraction = '0'] = at.split('.');
  return new Date(Number(whole) * 1_000).toISOString().replace('.000Z', `.${fraction}Z`);
}

/** Interleaves the measurements over all rounds, so that drift affects them equally; returns the median of each. */
export async function measureMedians(
  measures: Readonly<Record<string, Measure>>,
  { rounds = ROUNDS, tell = () => {} }: { readonly rounds?: number; readonly tell?: Tell },
) {
  const taken = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, measure] of Object.entries(measures)) {
      const rate = await measure();
      if (rate !== undefined) taken.set(name, [...(taken.get(name) ?? []), rate]);
    }
    tell(`round ${round + 1} of ${rounds}`);
  }
  return (name: string): number => median(taken.get(name) ?? [NaN]);
}

/** No row without a measurement of the peer. */
const rowAtLeast = (name: string, one: number, other: number, goal: number, detail: Row['detail']): Row[] =>
  Number.isNaN(other) ? [] : [rowOf(name, one / other, goal, { ...detail, one, other })];

async function tokenRow(port: number, client: Credentials, tell: Tell): Promise<Row[]> {
  const form = tokenForm(client).toString();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const sign = async (): Promise<number> => {
    const until = performance.now() + SECONDS * 1_000;
    let signed = 0;
    for (; performance.now() < until; signed += 1) {
      await new SignJWT({ sub: 'x' }).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
    }
    return signed / SECONDS;
  };
  const mint: Measure = async () => measureThroughput(port, () => post('/oauth/token', form), SECONDS);
  const rate = await measureMedians({ mint, sign }, { tell });
  const detail = { rounds: ROUNDS };
  return rowAtLeast('tokens against signatures alone', rate('mint'), rate('sign'), 0.4, detail);
}

/** An unknown client and a wrong secret must take the same time, so that timing does not reveal client ids. */
async function guessRow(port: number, clientId: string): Promise<Row> {
  const guess = async (id: string): Promise<number> => {
    const sentAt = performance.now();
    const body = tokenForm({ clientId: id, clientSecret: 'wrong' });
    await (await fetch(`http://127.0.0.1:${port}/oauth/token`, { method: 'POST', body })).text();
    return performance.now() - sentAt;
  };
  const guesses = { unknown: () => guess('unknown-client'), wrong: () => guess(clientId) };
  const rate = await measureMedians(guesses, { rounds: 30 });
  const detail = { unknownMs: rate('unknown'), wrongMs: rate('wrong'), rounds: 30 };
  const alike = (ratio: number): boolean => ratio <= 1.1 && ratio >= 1 / 1.1;
  const ratio = detail.unknownMs / detail.wrongMs;
  return rowOf('an unknown client against a wrong secret', ratio, 1.1, detail, alike);
}
