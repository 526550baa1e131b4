/** A small correct client that can be given mistakes. It runs in the test's process. */
import { readFileSync } from 'node:fs';
import { integerOf, member, parseJson, type Json } from '../../../engine/client/json.ts';
import type { Client } from '../client.ts';
import type { Given, World } from '../stage.ts';

export interface Habits {
  readonly mintsPerCall?: boolean;
  /** Seconds before exp at which a token is renewed. */
  readonly marginSeconds?: number;
  readonly retries401?: number;
  readonly remintsOn401?: boolean;
  readonly waitsFor429?: 'Retry-After' | 'seconds only' | 'backoff';
  readonly retries429?: number;
  readonly retries5xx?: number;
  /** The wait before the n-th retry in milliseconds, counted from 0. */
  readonly backoffMs?: (retry: number) => number;
  readonly retriedStatuses?: readonly number[];
  readonly retriesInvalidClient?: number;
  /** Returns the URL to request instead of `next`; called only on pages with one. */
  readonly onward?: (next: URL, page: PageSeen) => URL | string | undefined;
  readonly first?: (url: URL, given: Given) => URL | string;
  readonly endsAt?: (page: PageSeen, given: Given) => boolean;
  readonly strictFields?: boolean;
  readonly strictTokenFields?: boolean;
  readonly idOf?: (id: bigint) => string;
  /** The key for deduplication, computed from testTime; the id if absent. */
  readonly dedupes?: 'never' | ((testTime: string) => string);
  readonly keeps?: (testTime: string, given: Given) => boolean;
  readonly asks?: { readonly scope?: string; readonly strict?: boolean };
  readonly exitOf?: (status: number) => number;
  readonly takesPartial?: boolean;
  readonly timeoutMs?: number;
  readonly retriesDropped?: number;
  readonly prints?: (given: Given, token: string) => string;
  readonly says?: (given: Given, token: string) => string;
  readonly form?: (fields: Readonly<Record<string, string>>) => string;
  readonly secretInQuery?: boolean;
  readonly secretToApi?: boolean;
  readonly decodesToken?: boolean;
  readonly readsEvents?: 'deduped' | 'as they come' | 'by event';
  readonly headFirst?: boolean;
  readonly keepAlive?: boolean;
  readonly pageSize?: number;
  /** Walks two windows that meet at this instant, concurrently. */
  readonly splitAt?: string;
}

export interface PageSeen {
  readonly url: string;
  readonly text: string;
  readonly items: readonly Json[];
  readonly next: string | undefined;
  readonly link: string | null;
}

class GaveUp extends Error {}

const backoff = (retry: number): number => 40 * 2 ** retry;

export function smallClient(habits: Habits = {}): Client {
  return async (given, signal, _situation, world) => {
    const session = new Session(given, habits, signal, world);
    let status = 0;
    try {
      await session.collect();
    } catch (error) {
      if (signal.aborted) return { status: undefined, stdout: session.output(), stderr: '' };
      session.stderr += `gave up: ${(error as Error).message}\n`;
      status = habits.exitOf?.(1) ?? 1;
    }
    return { status, stdout: session.output(), stderr: session.stderr };
  };
}

class Session {
  stderr = '';
  private readonly lines: string[] = [];
  private readonly seen = new Set<string>();
  private token = '';
  private renewAtMs = 0;

  constructor(
    private readonly given: Given,
    private readonly habits: Habits,
    private readonly signal: AbortSignal,
    private readonly world: World,
  ) {}

  output(): string {
    return this.lines.map((one) => `${one}\n`).join('');
  }

  async collect(): Promise<void> {
    const { given, habits } = this;
    if (habits.splitAt) {
      await Promise.all([
        this.walk(this.firstUrl({ to: habits.splitAt })),
        this.walk(this.firstUrl({ from: habits.splitAt })),
      ]);
    } else await this.walk(this.firstUrl());
    if (habits.readsEvents && given.events) this.events(given.events, habits.readsEvents);
  }

  private async walk(first: string): Promise<void> {
    const { given, habits } = this;
    for (let url: string | undefined = first; url !== undefined;) {
      const page: PageSeen = await this.page(url);
      for (const item of page.items) this.take(item);
      if (habits.endsAt?.(page, given)) break;
      if (page.next === undefined) break;
      const next = new URL(page.next, url);
      url = (habits.onward ? habits.onward(next, page) : next)?.toString();
    }
  }

  private firstUrl(window: { readonly from?: string; readonly to?: string } = {}): string {
    const { baseUrl, tenantId, pageSize, from, to } = { ...this.given, ...window };
    const query = new URLSearchParams({ from, to });
    const size = this.habits.pageSize ?? pageSize;
    if (size !== undefined) query.set('pageSize', String(size));
    const url = `${baseUrl}/v1/tenants/${tenantId}/screenings?${query}`;
    return String(this.habits.first?.(new URL(url), this.given) ?? url);
  }

  private take(item: Json, eventId?: string): void {
    const id = integerOf(member(item, 'id'))!;
    const testTime = String(member(item, 'testTime'));
    const { dedupes, keeps, idOf = String, strictFields } = this.habits;
    if (strictFields && (item as Record<string, Json>)['site'] !== undefined)
      throw new GaveUp('unknown field "site"');
    if (keeps?.(testTime, this.given) === false) return;
    const key = eventId ?? (typeof dedupes === 'function' ? dedupes(testTime) : String(idOf(id)));
    if (dedupes !== 'never' && this.seen.has(key)) return;
    this.seen.add(key);
    this.lines.push(`{"id":${idOf(id)},"tenantId":"${this.given.tenantId}","testTime":"${testTime}"}`);
  }

  private events(file: string, how: NonNullable<Habits['readsEvents']>): void {
    for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
      const event = parseJson(line)!;
      const data = member(event, 'data')!;
      if (how === 'as they come') this.seen.clear();
      this.take(data, how === 'by event' ? `event ${String(member(event, 'id'))}` : undefined);
    }
  }

  private async page(url: string): Promise<PageSeen> {
    const { habits } = this;
    const tries = { refused: 0, limited: 0, failed: 0, dropped: 0 };
    for (;;) {
      const response = await this.get(url).catch((error: unknown) => {
        if (error instanceof GaveUp || this.signal.aborted || tries.dropped++ >= (habits.retriesDropped ?? 2))
          throw error;
        return undefined;
      });
      if (!response) continue;
      const { status, headers } = response.answer;
      if (status === 200) return read(url, response.text, headers.get('link'));
      if (status === 401 && tries.refused++ < (habits.retries401 ?? 1)) {
        if (habits.remintsOn401 !== false) this.renewAtMs = 0;
        continue;
      }
      if (status === 429 && tries.limited < (habits.retries429 ?? 5)) {
        await this.pause(this.waitOf(headers.get('retry-after'), tries.limited++));
        continue;
      }
      if (status >= 500 && tries.failed < (habits.retries5xx ?? 4)) {
        await this.pause((habits.backoffMs ?? backoff)(tries.failed++));
        continue;
      }
      if (habits.retriedStatuses?.includes(status) && tries.failed++ < 3) continue;
      throw new GaveUp(`${status} for a page`);
    }
  }

  private waitOf(value: string | null, retry: number): number {
    const how = this.habits.waitsFor429 ?? 'Retry-After';
    if (how === 'backoff' || value === null) return (this.habits.backoffMs ?? backoff)(retry);
    if (/^\d+$/.test(value)) return 1000 * Number(value);
    return how === 'seconds only' ? backoff(retry) : Math.max(0, Date.parse(value) - this.world.clock.now());
  }

  private pause = (ms: number): Promise<void> => this.world.clock.sleep(ms, this.signal);

  private async get(url: string): Promise<{ answer: Response; text: string }> {
    const { habits, given } = this;
    if (habits.mintsPerCall || this.world.clock.now() >= this.renewAtMs) await this.mint();
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.token}`,
      accept: 'application/json',
      ...(habits.keepAlive === false ? { connection: 'close' } : {}),
      ...(habits.secretToApi ? { 'x-client-secret': given.clientSecret } : {}),
    };
    const options = { headers, signal: this.signalOf() };
    if (habits.headFirst) await this.world.fetch(url, { ...options, method: 'HEAD' });
    const answer = await this.world.fetch(url, options);
    if (!habits.takesPartial) return { answer, text: await answer.text() };
    const pieces: Uint8Array[] = [];
    try {
      for await (const piece of answer.body!) pieces.push(piece as Uint8Array);
    } catch {
      // Uses the part that was received.
    }
    return { answer, text: Buffer.concat(pieces).toString() };
  }

  private signalOf(): AbortSignal {
    const { timeoutMs } = this.habits;
    if (timeoutMs === undefined) return this.signal;
    const late = new AbortController();
    void this.world.clock.sleep(timeoutMs, this.signal).then(() => late.abort(new Error('timeout')));
    return AbortSignal.any([this.signal, late.signal]);
  }

  private async mint(): Promise<void> {
    const { given, habits } = this;
    const fields = {
      grant_type: 'client_credentials',
      client_id: given.clientId,
      client_secret: given.clientSecret,
      scope: habits.asks?.scope ?? 'screenings.read',
    };
    const query = habits.secretInQuery ? `?client_secret=${encodeURIComponent(given.clientSecret)}` : '';
    for (let tried = 0; ; tried += 1) {
      const askedAtMs = this.world.clock.now();
      const answer = await this.world.fetch(`${given.authUrl}/oauth/token${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: habits.form?.(fields) ?? new URLSearchParams(fields).toString(),
        signal: this.signalOf(),
      });
      const body = (await answer.json()) as Record<string, unknown>;
      if (answer.status === 200) return this.keep(body, askedAtMs);
      if (tried >= (habits.retriesInvalidClient ?? 0)) throw new GaveUp(`no token: ${String(body['error'])}`);
    }
  }

  private keep(body: Record<string, unknown>, askedAtMs: number): void {
    const { habits, given } = this;
    this.token = String(body['access_token']);
    if (habits.strictTokenFields && 'issued_by' in body) throw new GaveUp('unknown field "issued_by"');
    if (habits.asks?.strict && body['scope'] !== habits.asks.scope) throw new GaveUp('not all scopes');
    if (habits.decodesToken) JSON.parse(Buffer.from(this.token.split('.')[1] ?? '', 'base64url').toString());
    const lifetime = Number(body['expires_in']);
    const margin = lifetime > 60 ? (habits.marginSeconds ?? 60) : 0;
    this.renewAtMs = askedAtMs + 1000 * (lifetime - margin);
    if (habits.prints) this.lines.push(habits.prints(given, this.token));
    if (habits.says) this.stderr += `${habits.says(given, this.token)}\n`;
  }
}

function read(url: string, text: string, link: string | null): PageSeen {
  const json = parseJson(text) ?? parseJson(`${text.slice(0, text.lastIndexOf('},{') + 1)}],"links":{}}`)!;
  const next = member(member(json, 'links'), 'next');
  return {
    url,
    text,
    items: member(json, 'items') as readonly Json[],
    next: typeof next === 'string' ? next : undefined,
    link,
  };
}
