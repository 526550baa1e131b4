/** What a client asked in one situation, as it was seen by the server. */
import type { Clock } from '../../engine/clock.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from '../../reference-server/http/http.ts';
import { isScreenings, isTokenRequest, queryOf } from '../../reference-server/run/alter.ts';
import { resolveUrl } from '../../engine/client/link-header.ts';
import { parseInstant, toDecimal } from '../../engine/data/instant.ts';
import { parseForm } from '../../reference-server/http/form.ts';
import { answerText } from '../render/timeline.ts';
import type { TimelineEntry } from './report.ts';

/** A page that was handed out. */
interface ServedPage {
  /** Absolute; absent on the last page. */
  readonly next?: string;
  readonly lastTestTime?: string;
  readonly items: number;
}

export interface Recorded {
  /** Counted from 1, in the order of arrival. */
  readonly number: number;
  /** Milliseconds since the client was started. */
  readonly atMs: number;
  /** When the answer was ready, on the same clock; undefined while there is none. */
  endMs?: number;
  readonly channel: TimelineEntry['channel'];
  readonly request: ServiceRequest;
  /** Which of the tokens issued it carried, counted from 1; undefined for none and for an unknown one. */
  readonly token: number | undefined;
  /** 0: no answer, or one that broke off. */
  status: number;
  page?: ServedPage;
  /** The moment that Retry-After named, on the same clock. */
  waitUntilMs?: number;
}

/** How often one URL may be asked before it is a storm and the client is stopped. */
const STORM = 60;

export class Recorder {
  readonly requests: Recorded[] = [];
  /** Every token handed out, in order. */
  readonly tokens: string[] = [];
  /** When the client last got something new. */
  progressMs = 0;
  /** Called when one URL is asked again and again. */
  onStorm = (): void => {};
  private startedMs = 0;
  private readonly asked = new Map<string, number>();
  private readonly served = new Set<string>();
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Milliseconds since the client was started. */
  now(): number {
    return this.clock.now() - this.startedMs;
  }

  /** Stands before the whole service. `origin` makes relative links absolute. */
  watch(handler: Handler, origin: string): Handler {
    return async (request) => {
      const record = this.note(request);
      const answer = await handler(request);
      // What is sent in pieces breaks off in the middle.
      const whole = typeof answer.body === 'string';
      record.status = whole ? answer.status : 0;
      if (whole && record.channel === 'token') this.noteToken(answer);
      if (whole && record.channel === 'pages' && request.method === 'GET' && answer.status === 200)
        this.notePage(record, answer, origin);
      record.endMs = this.now();
      const wait = answer.headers.find(([name]) => name.toLowerCase() === 'retry-after')?.[1];
      if (wait !== undefined) {
        const ms = /^\d+$/.test(wait) ? Number(wait) * 1000 : Date.parse(wait) - this.clock.now();
        record.waitUntilMs = record.endMs + ms;
      }
      return answer;
    };
  }

  /** The client's clock begins. */
  start(): void {
    this.startedMs = this.clock.now();
    this.progressMs = 0;
  }

  private note(request: ServiceRequest): Recorded {
    const bearer = /^bearer +(\S+)$/i.exec(request.headers['authorization'] ?? '')?.[1];
    const token = bearer === undefined ? 0 : this.tokens.indexOf(bearer) + 1;
    const channel = isScreenings(request) ? 'pages' : isTokenRequest(request) ? 'token' : 'other';
    const record: Recorded = {
      number: this.requests.length + 1,
      atMs: this.now(),
      channel,
      request,
      token: token || undefined,
      status: 0,
    };
    this.requests.push(record);
    const key = `${request.method} ${request.path}`;
    const times = (this.asked.get(key) ?? 0) + 1;
    this.asked.set(key, times);
    const often = channel === 'token' ? 10 * STORM : STORM;
    if (times > often) this.onStorm();
    return record;
  }

  private noteToken({ status, body }: ServiceAnswer): void {
    if (status !== 200) return;
    const token = (JSON.parse(String(body)) as { access_token?: unknown }).access_token;
    if (typeof token === 'string') this.tokens.push(token);
  }

  private notePage(record: Recorded, answer: ServiceAnswer, origin: string): void {
    const body = JSON.parse(String(answer.body)) as {
      items: { testTime: string }[];
      links: { next?: string };
    };
    const next =
      body.links.next === undefined ? undefined : resolveUrl(body.links.next, origin + record.request.path);
    const lastTestTime = body.items.at(-1)?.testTime;
    record.page = {
      items: body.items.length,
      ...(next === undefined ? {} : { next }),
      ...(lastTestTime === undefined ? {} : { lastTestTime }),
    };
    if (!this.served.has(record.request.path)) this.progressMs = this.now();
    this.served.add(record.request.path);
  }
}

/** The GETs of the screenings path, in the order of arrival. */
export const pageRequests = (requests: readonly Recorded[]): Recorded[] =>
  requests.filter(({ channel, request }) => channel === 'pages' && request.method === 'GET');

export const mints = (requests: readonly Recorded[]): Recorded[] =>
  requests.filter(({ channel, request }) => channel === 'token' && request.method === 'POST');

/**
 * A URL or path as what it asks for: percent-encoding undone, parameters in an order of their own, instants in one
 * spelling.
 */
export function sameAs(url: string): string {
  const { pathname, search } = new URL(url, 'http://server.invalid');
  const pairs = [...(parseForm(search.slice(1)) ?? new Map([[search, ['']]]))];
  const query = pairs.map(([name, values]) => `${name}=${values.map(instantOr).join(',')}`).sort();
  return `${decodeSafely(pathname).toLowerCase()}?${query.join('&')}`;
}

const instantOr = (value: string): string => {
  const at = parseInstant(value);
  return at ? toDecimal(at) : value;
};

const decodeSafely = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Whether a request begins a walk: it names no place after a screening. */
export const isStart = ({ request }: Recorded): boolean => !queryOf(request).has('from_id');

/** `at 1.204 s  429 (token 1)  GET …/screenings?…`: a request as a line of evidence, its path cut short. */
export function line({ atMs, status, request, token }: Recorded): string {
  const carried = token === undefined ? '' : ` (token ${token})`;
  return `at ${(atMs / 1000).toFixed(3)} s  ${answerText(status)}${carried}  ${request.method} ${request.path.replace(/^\/\S*\/tenants\/[^/\s]+\//, '…/')}`;
}

export const timelineOf = (requests: readonly Recorded[]): TimelineEntry[] =>
  requests.map(({ atMs, endMs, channel, request, status, token }) => ({
    atMs: Math.round(atMs),
    ...(endMs === undefined ? {} : { tookMs: Math.round(endMs - atMs) }),
    channel,
    request: `${request.method} ${request.path}`,
    status,
    ...(token === undefined ? {} : { token }),
  }));
