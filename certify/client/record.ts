/** Records the requests of a client in one situation, as the server sees them. */
import type { Clock } from '../../engine/clock.ts';
import { parseJson, type Json } from '../../engine/client/json.ts';
import { parseForm } from '../../reference-server/http/http.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from '../../reference-server/http/http.ts';
import { isScreenings, isTokenRequest } from '../../reference-server/run/alter.ts';
import { normalPath } from '../../engine/checks/next.ts';
import { resolveUrl } from '../../engine/client/link-header.ts';
import { parseInstant, toDecimal } from '../../engine/data/instant.ts';
import { answerText, type TimelineEntry } from '../render/pictures.ts';

export interface Recorded {
  /** Milliseconds since the server was started, just before the client. */
  readonly atMs: number;
  /** When the answer was ready, on the same clock; undefined until then. */
  endMs?: number;
  readonly channel: TimelineEntry['channel'];
  readonly request: ServiceRequest;
  /** The number of the issued token that it carried, counted from 1; undefined for none or an unknown one. */
  readonly token: number | undefined;
  /** 0: no answer, or an aborted one. */
  status: number;
  /** Of an answer with a page; `next` is absolute, and absent on the last page. */
  page?: { readonly next?: string; readonly items: readonly Json[] };
  /** The time named by Retry-After, on the same clock. */
  waitUntilMs?: number;
}

/** The number of requests for one URL above which the client is stopped. */
const STORM = 60;

export class Recorder {
  readonly requests: Recorded[] = [];
  readonly tokens: string[] = [];
  /** When the client last received something new. */
  progressMs = 0;
  onStorm = (): void => {};
  private readonly startedMs: number;

  constructor(private readonly clock: Clock) {
    this.startedMs = clock.now();
  }

  now(): number {
    return this.clock.now() - this.startedMs;
  }

  /** Wraps the whole service. `origin` resolves relative links. */
  watch(handler: Handler, origin: string): Handler {
    return async (request) => {
      const record = this.note(request);
      const answer = await handler(request);
      // Bodies sent in pieces are the ones that a situation aborts.
      const whole = typeof answer.body === 'string';
      record.status = whole ? answer.status : 0;
      if (record.status === 200 && record.channel === 'token')
        this.tokens.push((JSON.parse(String(answer.body)) as { access_token: string }).access_token);
      const isPage = record.channel === 'pages' && request.method === 'GET' && isJson(answer);
      if (record.status === 200 && isPage) this.notePage(record, answer, origin);
      record.endMs = this.now();
      const wait = answer.headers.find(([name]) => name.toLowerCase() === 'retry-after')?.[1];
      if (wait !== undefined) {
        const ms = /^\d+$/.test(wait) ? Number(wait) * 1000 : Date.parse(wait) - this.clock.now();
        record.waitUntilMs = record.endMs + ms;
      }
      return answer;
    };
  }

  private note(request: ServiceRequest): Recorded {
    const bearer = /^bearer +(\S+)$/i.exec(request.headers['authorization'] ?? '')?.[1];
    const token = bearer === undefined ? 0 : this.tokens.indexOf(bearer) + 1;
    const channel = isScreenings(request) ? 'pages' : isTokenRequest(request) ? 'token' : 'other';
    const record: Recorded = { atMs: this.now(), channel, request, token: token || undefined, status: 0 };
    this.requests.push(record);
    const { method, path } = request;
    const same = this.requests.filter((one) => one.request.method === method && one.request.path === path);
    if (same.length > (channel === 'token' ? 10 * STORM : STORM)) this.onStorm();
    return record;
  }

  private notePage(record: Recorded, answer: ServiceAnswer, origin: string): void {
    const { items, links } = parseJson(String(answer.body)) as {
      items: Json[];
      links: { next?: string };
    };
    const next = links.next && resolveUrl(links.next, origin + record.request.path);
    const { path } = record.request;
    if (!this.requests.some(({ page, request }) => page && request.path === path))
      this.progressMs = this.now();
    record.page = { items, next };
  }
}

const isJson = ({ headers }: ServiceAnswer): boolean =>
  headers.some(([, value]) => value.startsWith('application/json'));

export const pageRequests = (requests: readonly Recorded[]): Recorded[] =>
  requests.filter(({ channel, request }) => channel === 'pages' && request.method === 'GET');

export const mints = (requests: readonly Recorded[]): Recorded[] =>
  requests.filter(({ channel, request }) => channel === 'token' && request.method === 'POST');

/** Token requests after the first answer: concurrent walkers may each start without a token. */
export const laterMints = (requests: readonly Recorded[]): Recorded[] => {
  const minted = mints(requests);
  return minted.filter(({ atMs }) => atMs > (minted[0]!.endMs ?? Infinity));
};

/** Normalizes a URL or path for comparison: percent-decoded, parameters sorted, instants in one spelling. */
export function normalized(url: string): string {
  const { pathname, search } = new URL(url, 'http://server.invalid');
  const pairs = [...(parseForm(search.slice(1)) ?? [[search, ''] as const])];
  const query = pairs.map(([name, value]) => {
    const at = parseInstant(value);
    return `${name}=${at ? toDecimal(at) : value}`;
  });
  return `${normalPath(pathname)}?${query.sort().join('&')}`;
}

/** A request as a line of evidence with a shortened path: `at 1.204 s  429 (token 1)  GET …/screenings?…`. */
export function line({ atMs, status, request, token }: Recorded): string {
  const carried = token === undefined ? '' : ` (token ${token})`;
  return `at ${(atMs / 1000).toFixed(3)} s  ${answerText(status)}${carried}  ${request.method} ${request.path.replace(/^\/\S*\/tenants\/[^/\s]+\//, '…/')}`;
}

export const timelineOf = (requests: readonly Recorded[]): TimelineEntry[] =>
  requests.map(({ atMs, endMs, channel, request, status, token }) => ({
    ...{ channel, status, token, atMs: Math.round(atMs) },
    tookMs: endMs === undefined ? undefined : Math.round(endMs - atMs),
    request: `${request.method} ${request.path}`,
  }));
