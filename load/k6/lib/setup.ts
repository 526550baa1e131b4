/** Run by `setup`: mints tokens and finds the tenants and the window. */
import exec from 'k6/execution';
import { b64decode } from 'k6/encoding';
import { Client, mint, type Token } from './client.ts';
import { areMetricsRead, type LoadConfig } from './config.ts';
import { FAR_END, searchWindow, type Window } from './window.ts';

export interface SetupData {
  readonly tokens: readonly Token[];
  readonly tenantIds: readonly string[];
  readonly window: Window;
  /** Due moments are relative to this moment, in milliseconds since the epoch. */
  readonly startAtMs: number;
}

export const SETUP = {
  setupTimeout: '10m',
  ...(areMetricsRead ? {} : { systemTags: [] }),
  summaryTrendStats: ['avg', 'min', 'med', 'p(90)', 'p(95)', 'p(99)', 'max', 'count'],
  ...(__ENV['TESTID'] ? { tags: { testid: __ENV['TESTID'] } } : {}),
};

/** The flags --vus, --duration, --iterations and --stage replace a script's scenarios by one called `default`. */
export function refuseShortcuts(): void {
  if ('default' in (exec.test.options.scenarios ?? {}))
    exec.test.abort(
      'this script sends at a fixed rate: give -e RATE=… and -e DURATION=… instead of --vus, --duration, --iterations and --stage',
    );
}

const LEAD_MS = 500;
/** A moment after which VUs start in time. */
export const startSoon = (): Pick<SetupData, 'startAtMs'> => ({ startAtMs: Date.now() + LEAD_MS });

/** Throws an Error if there is no token or no screening. */
export function runSetup(config: LoadConfig): SetupData {
  refuseShortcuts();
  const tokens = config.clients.map((client) => mint(config, client));
  const tenantIds = config.clients.map(({ tenantId }, index) => tenantId || tenantOf(tokens[index]!.value));
  const window = config.window ?? findWindow(clientOf(config, { tenantIds, tokens }, 0, false));
  return { tokens, tenantIds, window, ...startSoon() };
}

/** A client of a VU; setup must not return secrets, because k6's results contain its return value. */
export const clientOf = (
  config: LoadConfig,
  { tenantIds, tokens }: Pick<SetupData, 'tenantIds' | 'tokens'>,
  index: number,
  isLoad = true,
): Client =>
  new Client(config, { ...config.clients[index]!, tenantId: tenantIds[index]! }, tokens[index]!, isLoad);

let client: Client | undefined;
/** The client of this VU, made once: reading k6's state costs more than the rest of an iteration. */
export const clientOfVu = (config: LoadConfig, data: SetupData): Client =>
  (client ??= clientOf(config, data, exec.vu.idInTest % config.clients.length));

function tenantOf(token: string): string {
  const claims = JSON.parse(b64decode(token.split('.')[1] ?? '', 'rawurl', 's')) as { tenant_id?: string };
  if (!claims.tenant_id) throw new Error('the token names no tenant_id: give -e TENANT_ID=…');
  return claims.tenant_id;
}

function findWindow(client: Client): Window {
  const search = searchWindow();
  let step = search.next();
  while (!step.done) {
    const { status, response } = client.fetchWithRetries(client.first(step.value, FAR_END, 1));
    if (status !== 200)
      throw new Error(`no page of the screenings: ${response?.error || `status ${status}`}`);
    const { items = [] } = response!.json() as { items?: { testTime?: string }[] };
    step = search.next(items.length === 0 ? null : items[0]!.testTime);
  }
  if (!step.value) throw new Error('the tenant has no screenings: load tests need some');
  return step.value;
}
