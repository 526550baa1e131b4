/** Plays the situations against a client, and builds the report. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { temporaryFolder } from '../../engine/files.ts';
import { KIT_NAME, KIT_VERSION } from '../../engine/package.ts';
import { mapConcurrently } from '../../engine/client/concurrency.ts';
import { createRedactor, type Redactor } from '../../engine/run/evidence/redact.ts';
import type { Verdict } from '../report/report.ts';
import type { Arguments } from './arguments.ts';
import { readPrinted, type Client } from './client.ts';
import { INTERRUPTED, judgePlay, throughout } from './judge.ts';
import { within } from './situations/blocks.ts';
import { timelineOf } from './record.ts';
import type { ClientReport, SituationResult } from './report.ts';
import { SITUATIONS } from './situations/all.ts';
import type { Play, Situation } from './situation.ts';
import { openStage, type Given, realWorld, type World } from './stage.ts';

export interface Options extends Pick<Arguments, 'only' | 'concurrency' | 'timeout' | 'listen'> {
  readonly name: string;
  readonly signal?: AbortSignal;
  /** Creates the clock and network of a situation. Default: the system clock and sockets. */
  readonly world?: () => World;
  readonly tell?: (result: SituationResult) => void;
}

/** Each token slows the search, and a client may request one for each page. */
const TOKENS_AT_MOST = 20;

/** A situation with its result; `play` is absent if it was not played. */
interface Row {
  readonly situation: Situation;
  readonly result: SituationResult;
  readonly play?: Play;
}

interface Context extends Options {
  readonly client: Client;
  readonly directory: string;
  readonly clientSecret: string;
  /** Receives every token of the run. */
  readonly redactor: Redactor;
}

/** Throws a UsageError if the client cannot be started. */
export async function certifyClient(client: Client, options: Options): Promise<ClientReport> {
  await using directory = await temporaryFolder('screenings-client');
  const startedAt = new Date();
  const chosen = SITUATIONS.filter(({ name }) => options.only?.includes(name) ?? true);
  const clientSecret = randomBytes(24).toString('hex');
  const redactor = createRedactor([clientSecret]);
  // One port serves one situation at a time, and a user may take any time.
  const byHand = options.listen === undefined ? {} : { concurrency: 1, timeout: 0 };
  const context = { ...options, ...byHand, client, directory: directory.path, clientSecret, redactor };
  const rows = new Map<string, Row>();
  const put = async (situation: Situation): Promise<void> =>
    void rows.set(situation.name, await play(situation, context));
  // A client that fails the plain walk cannot pass any other situation.
  const first = chosen.find((situation) => situation === SITUATIONS[0]);
  const others = chosen.filter((situation) => situation !== first);
  if (first) await put(first);
  if (first && rows.get(first.name)!.play?.ended.status !== 0 && context.timeout > 0) {
    const reason = `${first.name} must end with exit status 0 first`;
    for (const situation of others)
      rows.set(situation.name, { situation, result: resultOf(situation, 'untested', reason) });
  } else await mapConcurrently(others, put, context.concurrency);
  const played = chosen.map(({ name }) => rows.get(name)!);
  const situations = [
    ...played.map((row) => withNeed(row, rows)),
    ...(options.only ? [] : throughout(played, redactor)),
  ];
  return {
    ...verdictOf(situations),
    kit: { name: KIT_NAME, version: KIT_VERSION },
    selection: options.only && chosen.map(({ name }) => name),
    client: options.name,
    startedAt: startedAt.toISOString(),
    durationMs: Date.now() - startedAt.getTime(),
    situations,
  };
}

const resultOf = (
  { name, section, level, title, lookAt }: Situation,
  status: SituationResult['status'],
  reason: string | undefined,
): SituationResult => ({
  ...{ name, section, level, title, lookAt },
  ...{ status, reason, failures: [], durationMs: 0 },
});

async function play(situation: Situation, context: Context): Promise<Row> {
  const { tell, signal, redactor } = context;
  if (signal?.aborted) return { situation, result: resultOf(situation, 'untested', INTERRUPTED) };
  const began = performance.now();
  try {
    const seen = await perform(situation, context);
    const { status, reason, failures } = judgePlay(situation, seen);
    const { redact, redactDeep, addToken } = redactor;
    for (const token of seen.tokens.slice(0, TOKENS_AT_MOST)) addToken(token);
    const result: SituationResult = {
      ...resultOf(situation, status, reason && redact(reason)),
      failures: redactDeep(failures, 'fixed'),
      durationMs: Math.round(performance.now() - began),
      timeline: redactDeep(timelineOf(seen.requests), 'fixed'),
    };
    tell?.(result);
    return { situation, result, play: seen };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { situation, result: resultOf(situation, 'error', reason) };
  }
}

async function perform(
  situation: Situation,
  { client, directory, clientSecret, listen, timeout, signal, world: openWorld = realWorld }: Context,
): Promise<Play> {
  const world = openWorld();
  const staged = situation.stage(world.clock);
  await using stage = await openStage(staged, world, clientSecret, listen);
  const { recorder } = stage;
  const { events } = situation;
  const eventsFile = events && join(directory, `${situation.name}.events.ndjson`);
  if (eventsFile) await writeFile(eventsFile, events.map((one) => `${one}\n`).join(''));
  const given: Given = { ...stage.given, events: eventsFile };
  const [ending, watching] = [new AbortController(), new AbortController()];
  const stop = (why: NonNullable<Play['stopped']>): void => ending.abort(why);
  const stopWhenSilent = async (): Promise<void> => {
    while (!watching.signal.aborted) {
      const leftMs = recorder.progressMs + 1000 * timeout - recorder.now();
      if (leftMs <= 0) return stop('silent');
      await world.clock.sleep(leftMs, watching.signal);
    }
  };
  recorder.onStorm = () => stop('storm');
  signal?.addEventListener('abort', () => stop('interrupted'), { signal: watching.signal });
  if (timeout > 0) void stopWhenSilent();
  const ended = await client(given, ending.signal, situation.name, world).finally(() => watching.abort());
  return {
    ...{ given, ended, requests: recorder.requests, tokens: recorder.tokens },
    plainRequests: stage.plainRequests(),
    printed: readPrinted(ended.stdout ?? ''),
    stopped: ending.signal.reason as Play['stopped'],
    expected: within(staged.screenings, staged.window),
    all: [...staged.screenings, ...(situation.onlyEvents ?? [])],
  };
}

function withNeed({ situation: { needs }, result }: Row, rows: ReadonlyMap<string, Row>): SituationResult {
  const needed = needs === undefined ? undefined : rows.get(needs)?.result;
  return result.status === 'pass' && needed?.status === 'untested'
    ? { ...result, status: 'untested', reason: needed.reason ?? '' }
    : result;
}

const optional = new Set(SITUATIONS.filter((one) => one.optional).map(({ name }) => name));

/** Whether the verdict needs this situation, which could not be judged. */
const isOpen = ({ status, level, name, reason }: SituationResult): boolean =>
  status === 'error' ||
  (status === 'untested' && (reason === INTERRUPTED || (level === 'MUST' && !optional.has(name))));

function verdictOf(situations: readonly SituationResult[]): { verdict: Verdict; summary: string } {
  const names = (status: SituationResult['status']): string =>
    situations.flatMap((one) => (one.status === status ? one.name : [])).join(', ');
  const [failed, warned, left] = [names('fail'), names('warn'), names('untested')];
  if (failed) return { verdict: 'non-conformant', summary: `The client broke a MUST in ${failed}.` };
  const [first, ...others] = situations.filter(isOpen);
  if (first) {
    const what = `${first.name}${others.length > 0 ? ` and ${others.length} more` : ''}`;
    const summary = `Nothing failed, but ${what} could not be judged: ${first.reason ?? ''}`;
    return { verdict: 'incomplete', summary };
  }
  const shown = situations.filter(({ status }) => status !== 'untested').length;
  const parts = [
    `No MUST was broken in ${shown} situations.`,
    ...(warned ? [`Warnings: ${warned}.`] : []),
    ...(left ? [`Untested: ${left}.`] : []),
  ];
  return { verdict: 'conformant', summary: parts.join(' ') };
}
