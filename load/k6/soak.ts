/** A few VUs that read windows end to end for as long as asked, tokens renewed on the way. soak and smoke run it. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { firstPage, mint, nextPlace, Session, type Place, type Token } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
import { randomSource } from './lib/random.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();

export const options: Options = {
  scenarios: {
    soak: {
      executor: 'constant-vus',
      vus: config.vus,
      duration: `${config.seconds}s`,
      gracefulStop: `${config.timeoutSeconds}s`,
    },
  },
  thresholds: Object.fromEntries(
    Object.entries(config.thresholds).map(([name, rules]) => [name, [...rules]]),
  ),
};

export const setup = (): Token[] => config.clients.map((client) => mint(config, client));

const WALK_PAGES = 50;
let session: Session | undefined;
let place: Place | undefined;
let walked = 0;

export default function (tokens: Token[]): void {
  const which = (exec.vu.idInTest - 1) % config.clients.length;
  session ??= new Session(config, config.clients[which]!, tokens[which]!);
  if (!place || walked >= WALK_PAGES) {
    const { from, to } = config.window;
    const [first, last] = [Date.parse(from), Date.parse(to)];
    const random = randomSource(config.seed * 7919 + exec.scenario.iterationInTest)();
    const start = new Date(first + random * (last - first) * 0.95).toISOString();
    place = firstPage(config, session.client, start, to, config.pageSize);
    walked = 0;
  }
  const startedAtMs = Date.now();
  const sent = session.ask(place, config.pageSize, startedAtMs);
  console.log(`s ${startedAtMs} ${sent.serviceMs.toFixed(2)} ${sent.status}`);
  if (sent.status === 429) {
    sleep(Math.max(0.05, sent.retryAfterSeconds ?? 1));
    return;
  }
  place = sent.status === 200 ? nextPlace(config, sent, place.to) : undefined;
  walked += 1;
  if (sent.status !== 200) sleep(1);
  else if (config.pauseMs) sleep(config.pauseMs / 1000);
}
