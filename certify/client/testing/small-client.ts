/** A small correct client that can be given mistakes. It runs in the test's process. */
import { readFileSync } from 'node:fs';
import { integerOf, member, parseJson, type Json } from '../../../engine/client/json.ts';
import { pageUrl } from '../../../engine/client/page.ts';
import type { Client } from '../client.ts';
import type { Given, Window } from '../stage.ts';

interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A form; absent for pages. */
  readonly body?: string;
}

export interface PageSeen {
  readonly url: string;
  readonly items: readonly Json[];
  readonly next: string | undefined;
  readonly link: string | null;
  readonly text: string;
}

export interface Habits {
  readonly scope?: string;
  /** Seconds before exp at which a token is renewed; Infinity: a token per call. */
  readonly marginSeconds?: number;
  /** Renews its token for each call after the first renewal. */
  readonly losesRenewedTokens?: true;
  /** Retries by status, in addition to RETRIES; 0 is a broken connection, 500 any other 5xx. */
  readonly retries?: Readonly<Record<number, number>>;
  /** Requests for other URLs are not retried. */
  readonly retriesOnly?: RegExp;
  readonly retriesOfCredentials?: number;
  /** The most tokens minted after a 401; Infinity if absent. */
  readonly remintsOn401?: number;
  readonly waitsFor429?: 'Retry-After' | 'seconds only' | 'backoff';
  /** The wait before the n-th retry in milliseconds, counted from 0. */
  readonly backoffMs?: (retry: number) => number;
  readonly sends?: (sent: Sent, given: Given) => Sent;
  /** What it cannot read in the text of a 200 answer, and what it says of it. */
  readonly chokesOn?: readonly [text: RegExp, why: string];
  /** Returns the URL to request instead of `next`; called only on pages with one. */
  readonly onward?: (next: URL, page: PageSeen) => URL | string | undefined;
  readonly first?: (url: URL, given: Given) => URL | string;
  /** Whether this page, counted from 1, is the last one. */
  readonly endsAt?: (page: PageSeen, given: Given, number: number) => boolean;
  readonly idOf?: (id: bigint) => string;
  /** The key for deduplication, computed from testTime; the id if absent. */
  readonly dedupes?: 'never' | ((testTime: string) => string);
  readonly keeps?: (testTime: string, given: Given) => boolean;
  readonly readsEvents?: 'deduped' | 'by event';
  /** The page that it takes an answer for that is none, or breaks off; such an answer is an error if absent. */
  readonly salvages?: string;
  readonly timeoutMs?: number;
  /** The exit status after an error; 1 if absent. */
  readonly exitsWith?: number;
  /** What it prints when it has a token. */
  readonly prints?: (given: Given, token: string) => { readonly stdout?: string; readonly stderr?: string };
  readonly headFirst?: boolean;
  /** Walks these parts of the window concurrently. */
  readonly parts?: readonly Partial<Window>[];
  /** After the walk, asks for screenings that have arrived since: those after the last item. */
  readonly resumes?: true;
  /** Follows a redirect with all headers. */
  readonly followsRedirects?: true;
  readonly spells?: (testTime: string) => string;
}

class GaveUp extends Error {}

/** The URL with another cursor: after this item. */
export function startingAfter(url: string, item: Json): string {
  const copy = new URL(url);
  copy.searchParams.set('from', String(member(item, 'testTime')));
  copy.searchParams.set('from_id', String(integerOf(member(item, 'id'))));
  return copy.href;
}

const RETRIES: Readonly<Record<number, number>> = { 0: 2, 401: 1, 429: 5, 500: 4 };
const backoff = (retry: number): number => 40 * 2 ** retry;

export function smallClient(habits: Habits): Client {
  return async (given, signal, _situation, { clock, fetch }) => {
    const lines: string[] = [];
    const seen = new Set<string>();
    let stderr = '';
    let token = '';
    let renewAtMs = 0;
    let remintsLeft = habits.remintsOn401 ?? Infinity;

    const take = (item: Json, eventId?: string): void => {
      const id = integerOf(member(item, 'id'))!;
      const testTime = String(member(item, 'testTime'));
      const { dedupes, idOf = String } = habits;
      if (habits.keeps?.(testTime, given) === false) return;
      const key = eventId ?? (typeof dedupes === 'function' ? dedupes(testTime) : idOf(id));
      if (dedupes !== 'never' && seen.has(key)) return;
      seen.add(key);
      const spelt = (habits.spells ?? String)(testTime);
      lines.push(`{"id":${idOf(id)},"tenantId":"${given.tenantId}","testTime":"${spelt}"}`);
    };

    const send = async (sent: Sent, method = sent.body === undefined ? 'GET' : 'POST'): Promise<Response> => {
      const { url, headers, body = null } = habits.sends?.(sent, given) ?? sent;
      const sentAtMs = clock.now();
      const answer = await fetch(url, { method, headers, body, signal });
      if (clock.now() - sentAtMs > (habits.timeoutMs ?? Infinity)) throw new Error('timeout');
      const onward = habits.followsRedirects && answer.headers.get('location');
      return onward ? fetch(onward, { method, headers, body, signal }) : answer;
    };

    const check = (text: string): void => {
      const [unreadable, why] = habits.chokesOn ?? [];
      if (unreadable?.test(text)) throw new GaveUp(why);
    };

    const mint = async (): Promise<void> => {
      const form = new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: given.clientId,
        client_secret: given.clientSecret,
        scope: habits.scope ?? 'screenings.read',
      });
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      for (let tried = 0; ; tried += 1) {
        const askedAtMs = clock.now();
        const answer = await send({ url: `${given.authUrl}/oauth/token`, headers, body: String(form) });
        const text = await answer.text();
        const body = JSON.parse(text) as Record<string, unknown>;
        if (answer.status === 200) {
          check(text);
          const isLost = habits.losesRenewedTokens && token !== '';
          token = String(body['access_token']);
          const lifetime = isLost ? 0 : Number(body['expires_in']);
          renewAtMs = askedAtMs + 1000 * (lifetime - (lifetime > 60 ? (habits.marginSeconds ?? 60) : 0));
          const printed = habits.prints?.(given, token);
          if (printed?.stdout) lines.push(printed.stdout);
          stderr += printed?.stderr ?? '';
          return;
        }
        if (tried >= (habits.retriesOfCredentials ?? 0))
          throw new GaveUp(`no token: ${String(body['error'])}`);
      }
    };

    const get = async (url: string) => {
      if (clock.now() >= renewAtMs) await mint();
      const sent = { url, headers: { authorization: `Bearer ${token}`, accept: 'application/json' } };
      if (habits.headFirst) await send(sent, 'HEAD');
      const { status, headers, body } = await send(sent);
      const pieces: Uint8Array[] = [];
      try {
        for await (const piece of body!) pieces.push(piece as Uint8Array);
      } catch (error) {
        if (!habits.salvages) throw error;
      }
      return { status, headers, text: Buffer.concat(pieces).toString() };
    };

    const waitOf = (value: string | null, retry: number): number => {
      const how = habits.waitsFor429 ?? 'Retry-After';
      if (how === 'backoff' || value === null) return (habits.backoffMs ?? backoff)(retry);
      if (/^\d+$/.test(value)) return 1000 * Number(value);
      return how === 'seconds only' ? backoff(retry) : Math.max(0, Date.parse(value) - clock.now());
    };

    const pageAt = async (url: string): Promise<PageSeen> => {
      const tries = new Map<number, number>();
      /** The number of this retry; undefined if there are no more. */
      const again = (status: number): number | undefined => {
        const kind = Math.min(status, 500);
        const tried = tries.get(kind) ?? 0;
        tries.set(kind, tried + 1);
        const retries = { ...RETRIES, ...habits.retries };
        const most = habits.retriesOnly?.test(url) === false ? 0 : (retries[status] ?? retries[kind] ?? 0);
        return tried < most ? tried : undefined;
      };
      for (;;) {
        const answer = await get(url).catch((error: unknown) => {
          if (error instanceof GaveUp || signal.aborted || again(0) === undefined) throw error;
        });
        if (!answer) continue;
        const { status, headers, text } = answer;
        if (status === 200) return read(url, text, headers.get('link'));
        const retry = again(status);
        if (retry === undefined) throw new GaveUp(`${status} for a page`);
        if (status === 401 && remintsLeft-- > 0) renewAtMs = 0;
        if (status === 429) await clock.sleep(waitOf(headers.get('retry-after'), retry), signal);
        if (status >= 500) await clock.sleep((habits.backoffMs ?? backoff)(retry), signal);
      }
    };

    const read = (url: string, text: string, link: string | null): PageSeen => {
      check(text);
      const json = parseJson(text) ?? parseJson(habits.salvages ?? '');
      const next = member(member(json, 'links'), 'next');
      const items = member(json, 'items') as readonly Json[];
      return { url, items, link, text, next: typeof next === 'string' ? next : undefined };
    };

    const walk = async (window: Partial<Window>): Promise<void> => {
      const { baseUrl, tenantId, from, to, pageSize } = { ...given, ...window };
      const first = new URL(pageUrl(baseUrl, tenantId, { from, to, pageSize }));
      let url: string | undefined = String(habits.first?.(first, given) ?? first);
      for (let number = 1; url !== undefined; number += 1) {
        const page = await pageAt(url);
        for (const item of page.items) take(item);
        if (page.next === undefined && habits.resumes && page.items.length > 0)
          await pageAt(startingAfter(String(first), page.items.at(-1)!));
        if (habits.endsAt?.(page, given, number) || page.next === undefined) break;
        const next = new URL(page.next, url);
        url = (habits.onward ? habits.onward(next, page) : next)?.toString();
      }
    };

    let status: number | undefined = 0;
    try {
      await Promise.all((habits.parts ?? [{}]).map(walk));
      const events = habits.readsEvents && given.events ? readFileSync(given.events, 'utf8') : '';
      for (const line of events.split('\n').filter(Boolean)) {
        const event = parseJson(line)!;
        const own = habits.readsEvents === 'by event' ? `event ${String(member(event, 'id'))}` : undefined;
        take(member(event, 'data')!, own);
      }
    } catch (error) {
      stderr += `gave up: ${(error as Error).message}\n`;
      status = signal.aborted ? undefined : (habits.exitsWith ?? 1);
    }
    return { status, stdout: lines.map((one) => `${one}\n`).join(''), stderr };
  };
}
