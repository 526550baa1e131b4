/** Judges one play of a situation, the screenings that the client collected, and all plays together. */
import { member, parseJson, type JsonObject } from '../../engine/client/json.ts';
import { parseInstant, sameInstant } from '../../engine/data/instant.ts';
import type { Screening } from '../../engine/data/dataset.ts';
import { createRedactor, REDACTED, type Redactor } from '../../engine/run/evidence/redact.ts';
import { several } from '../render/results.ts';
import type { Level } from '../../engine/requirements.ts';
import type { Status } from '../report/report.ts';
import { pageRequests, type Recorded } from './record.ts';
import type { ClientFailure, Rule, SituationResult } from './report.ts';
import { finding, none, unless, type Play, type Situation } from './situation.ts';

export function judgePlay(
  situation: Situation,
  play: Play,
): Pick<SituationResult, 'status' | 'reason' | 'failures'> {
  const open = whyUntested(situation, play);
  if (open !== undefined) return { status: 'untested', reason: open, failures: [] };
  const own = [
    ...(situation.judge?.(play) ?? []),
    ...soldFindings(situation, play),
    ...endFindings(situation, play),
  ];
  const gaveUp = givenUp(situation, play);
  // Giving up is only reported if its cause is not.
  const failures = own.length === 0 && gaveUp && situation.givingUp !== 'allowed' ? [gaveUp] : own;
  const status = statusOf(failures, situation.level);
  if (status !== 'pass') return { status, failures };
  if (!situation.impossible && play.ended.stdout === undefined)
    return { status: 'untested', reason: UNSEEN, failures };
  const note = `the client gave up (exit status ${play.ended.status}), and said so`;
  return { status, failures, ...(gaveUp ? { reason: note } : {}) };
}

/** A SHOULD in a MUST situation is a warning; no finding in a SHOULD situation breaks a MUST. */
function statusOf(failures: readonly ClientFailure[], own: Level): Status {
  const levels = failures.map(({ level }) => (own === 'SHOULD' ? own : (level ?? own)));
  return levels.includes('MUST') ? 'fail' : levels.length > 0 ? 'warn' : 'pass';
}

function whyUntested(situation: Situation, play: Play): string | undefined {
  if (play.stopped === 'interrupted') return INTERRUPTED;
  if (play.requests.length + play.plainRequests === 0 && !situation.needs)
    return situation.unspoken ?? silent(play);
  const met = situation.met?.(play) ?? true;
  return met === true || play.stopped !== undefined ? undefined : met;
}

const UNSEEN = 'the collected screenings are unknown: redirect the output of the client to the printed file';
export const INTERRUPTED = 'the run was interrupted';

/** `: what it said`, for the end of a message. */
const lastWords = ({ stderr }: Play['ended']): string =>
  stderr.trim() && `: ${stderr.trim().split('\n').at(-1)!.slice(0, 300)}`;

/** A client without requests is untested; the reason contains how it ended. */
function silent({ ended, stopped }: Play): string {
  const end = stopped ? 'had to be stopped' : `ended with exit status ${ended.status ?? 'unknown'}`;
  return `the client sent no request, and ${end}${lastWords(ended)}`;
}

/** Findings on a client that exited with 0 and thereby declared the window complete. */
function soldFindings({ impossible }: Situation, play: Play): readonly ClientFailure[] {
  const { ended, printed, requests, stopped } = play;
  if (stopped || ended.status || ended.stdout === undefined) return [];
  if (!impossible) return collectionFindings(play);
  const received = `exit status 0 with ${several(printed.screenings.length, 'screening')}`;
  const expected = 'an exit status other than 0: the window could not be collected';
  return [finding(expected, received, pageRequests(requests).slice(-3))];
}

/** A client that had to be stopped; a warning if it may have been waiting before a retry, or must not connect. */
function endFindings({ impossible }: Situation, { requests, stopped }: Play): readonly ClientFailure[] {
  if (stopped === undefined) return [];
  const shows = requests.slice(-5);
  if (stopped === 'storm')
    return [
      finding('an end after a few retries', `${several(requests.length, 'request')}, and no end`, shows),
    ];
  const last = shows.at(-1);
  const mayBackOff = last ? isRetryable(last) : impossible;
  const received = 'none: the client made no progress within the timeout (--timeout), and was stopped';
  return [finding('an end in bounded time', received, shows, mayBackOff ? 'SHOULD' : undefined)];
}

/** Answered, but neither with what was requested nor with a final error. */
const isRetryable = ({ channel, status, page, endMs }: Recorded): boolean =>
  endMs !== undefined &&
  (status === 200 ? channel === 'pages' && !page : status === 429 || status >= 500 || status === 0);

function givenUp({ impossible, givingUp }: Situation, play: Play): ClientFailure | undefined {
  const { ended, requests, stopped } = play;
  if (stopped || impossible || !ended.status) return undefined;
  return finding(
    'the window to be collected whole',
    `exit status ${ended.status}${lastWords(ended)}`,
    requests.slice(-4),
    givingUp === 'warns' ? 'SHOULD' : undefined,
  );
}

// -- the screenings that a client declared complete --------------------------------------------------

const shown = (ids: readonly bigint[]): string =>
  `${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ` and ${ids.length - 3} more` : ''}`;

function collectionFindings(play: Play): ClientFailure[] {
  const { printed, expected, all, given } = play;
  const wanted = new Set(expected.map(({ id }) => id));
  const known = new Set(all.map(({ id }) => id));
  const times = new Map<bigint, number>();
  for (const { id } of printed.screenings) times.set(id, (times.get(id) ?? 0) + 1);
  const ids = [...times.keys()];
  const missing = expected.filter(({ id }) => !times.has(id));
  const repeated = ids.filter((id) => times.get(id)! > 1);
  const foreign = ids.filter((id) => !known.has(id));
  const beside = ids.filter((id) => known.has(id) && !wanted.has(id) && given.events === undefined);
  const others = repeated.length > 1 ? `, and ${several(repeated.length - 1, 'other')} more than once` : '';
  return [
    ...unless(
      printed.malformed.length === 0,
      'one JSON object a line',
      `a line that is none: ${printed.malformed[0]?.slice(0, 120)}`,
    ),
    ...(missing.length > 0 ? [lost(play, missing)] : []),
    ...unless(
      repeated.length === 0,
      'each screening once (the id is the key for deduplication)',
      `screening ${repeated[0]} ${times.get(repeated[0]!)} times${others}`,
    ),
    ...unless(foreign.length === 0, 'ids as they were sent', `${shown(foreign)}, which no screening has`),
    ...unless(
      beside.length === 0,
      'the screenings of [from, to) alone',
      `${shown(beside)}, which the window does not hold`,
    ),
  ];
}

function lost({ requests, expected, printed }: Play, missing: readonly Screening[]): ClientFailure {
  const [first] = missing as [Screening];
  const place = expected.indexOf(first);
  const before = expected[place - 1];
  const tie = before && sameInstant(parseInstant(before.testTime)!, parseInstant(first.testTime)!);
  const after = before ? `, which follows ${before.id}${tie ? ' at the same testTime' : ''}` : '';
  const double = BigInt(Number(first.id));
  const rounding =
    double !== first.id && printed.screenings.some(({ id }) => id === double)
      ? `; its id was rounded to ${double}, as a double is`
      : '';
  const last = requests.findLast(({ page }) => page !== undefined);
  const unfollowed = last?.page?.next !== undefined && printed.screenings.length < expected.length;
  return finding(
    `all ${several(expected.length, 'screening')} of the window`,
    `${expected.length - missing.length}, and exit status 0: ${first.id} is missing${after}` +
      `${missing.length > 1 ? `, and ${missing.length - 1} more` : ''}${rounding}` +
      `${unfollowed ? `; the last page asked for had ${several(last.page!.items.length, 'item')} and a next` : ''}`,
  );
}

/** The first text that the client changed. Members that it leaves out do not matter, nor how it spells instants. */
function alteredTexts({ printed, all }: Play): ClientFailure[] {
  const known = new Map(all.map(({ id, json }) => [id, json]));
  for (const { id, json } of printed.screenings)
    for (const [name, value] of Object.entries(parseJson(known.get(id) ?? '{}') as JsonObject)) {
      const own = member(json, name);
      if (typeof value === 'string' && typeof own === 'string' && !isSameText(value, own))
        return [finding('texts as they were sent', `${name} ${own} for ${value} in screening ${id}`)];
    }
  return [];
}

function isSameText(sent: string, printed: string): boolean {
  // Python and databases print a space for the T.
  const [at, own] = [parseInstant(sent), parseInstant(printed.replace(' ', 'T'))];
  return at && own ? sameInstant(at, own) : sent.toLowerCase() === printed.toLowerCase();
}

// -- rules that are judged over all situations --------------------------------------------------------

/** Findings that break a MUST although the situation itself is a SHOULD. */
const graver =
  (judge: typeof soldFindings): typeof soldFindings =>
  (situation, play) =>
    situation.level === 'MUST' || whyUntested(situation, play) !== undefined
      ? []
      : judge(situation, play)
          .slice(0, 1)
          .filter(({ level }) => level === undefined);

const RULES: readonly (Rule & { readonly judge: typeof soldFindings })[] = [
  {
    name: 'nothing-partial-as-whole',
    section: '4.2',
    level: 'MUST',
    title: 'if the window cannot be collected completely, the exit status is not 0',
    lookAt: ['errors that end the loop: the exit status must not be 0'],
    judge: graver(soldFindings),
  },
  {
    name: 'comes-to-an-end',
    section: '7.2',
    level: 'MUST',
    title: 'whatever the server does, the client ends by itself after a bounded number of requests',
    lookAt: ['every loop around a request: it counts its tries'],
    judge: graver(endFindings),
  },
  {
    name: 'secret-kept',
    section: '4.1',
    level: 'MUST',
    title:
      'the client_secret is sent only to the token endpoint, in the body: it appears in no URL and in no output',
    lookAt: [
      'what is logged of a request or an error',
      'where the credentials are put: the form, not the query',
    ],
    judge: (_, play) => leaks(play),
  },
  {
    name: 'texts-unchanged',
    section: '2.3',
    level: 'SHOULD',
    title: 'texts are printed as they were received (UTF-8), and times as the same instants',
    lookAt: ['the decoder of the body: UTF-8 (RFC 8259, 8.1)', 'times: their offset and all fraction digits'],
    // An altered id would have the texts of another screening.
    judge: (situation, play) => (soldFindings(situation, play).length > 0 ? [] : alteredTexts(play)),
  },
];

function leaks({ requests, ended, tokens, given }: Play): ClientFailure[] {
  const { redact } = createRedactor([given.clientSecret]);
  const hasSecret = (text: string): boolean => redact(text).includes(REDACTED);
  const hasToken = (text: string): boolean => tokens.some((token) => text.includes(token));
  const outputs = { 'standard output': ended.stdout ?? '', 'standard error': ended.stderr };
  const inUrl = (isIn: typeof hasToken) => requests.filter(({ request }) => isIn(request.path));
  const elsewhere = requests.filter(
    ({ channel, request: { body, headers } }) =>
      channel !== 'token' && hasSecret(`${body.toString()} ${Object.values(headers).join(' ')}`),
  );
  return [
    ...none(inUrl(hasToken), 'no token in a URL', 'an access token in one', 'SHOULD'),
    ...none(inUrl(hasSecret), 'no secret in a URL', 'the client_secret in one'),
    ...none(elsewhere, 'the secret to stay with the token endpoint', 'it in another request'),
    ...Object.entries(outputs).flatMap(([where, text]) => [
      ...unless(!hasSecret(text), `no secret on ${where}`, 'the client_secret there'),
      ...unless(!hasToken(text), `no token on ${where}`, 'an access token there', [], 'SHOULD'),
    ]),
  ];
}

/** The results of these rules, each kind of finding once; untested if there was no request at all. */
export function throughout(
  rows: readonly { readonly situation: Situation; readonly play?: Play }[],
  { redactDeep }: Redactor,
): SituationResult[] {
  const played = rows.flatMap(({ situation, play }) => (play ? [{ situation, play }] : []));
  const isSilent = played.every(({ play }) => play.requests.length === 0);
  return RULES.map(({ judge, ...rule }) => {
    const kinds = new Map<string, ClientFailure>();
    for (const { situation, play } of played)
      for (const failure of judge(situation, play)) {
        const { expected, message, received } = failure;
        const where = ` (in ${situation.name})`;
        if (!kinds.has(expected))
          kinds.set(expected, { ...failure, message: message + where, received: received + where });
      }
    const failures = redactDeep([...kinds.values()], 'fixed');
    return isSilent
      ? { ...rule, status: 'untested', reason: 'no request was seen', failures: [], durationMs: 0 }
      : { ...rule, status: statusOf(failures, rule.level), failures, durationMs: 0 };
  });
}
