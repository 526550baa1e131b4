/** Judges one play of a situation. */
import type { Status } from '../../report.ts';
import { line, pageRequests } from '../record.ts';
import type { ClientFailure } from '../report.ts';
import { finding, type Play, type Situation } from '../situation.ts';
import { several } from '../../render/results.ts';
import { collectionFindings } from './collection.ts';

export interface Judged {
  readonly status: Status;
  readonly reason?: string;
  readonly failures: readonly ClientFailure[];
  /** Findings that break a MUST although the situation itself is a SHOULD. */
  readonly graver: { readonly soldAsWhole?: ClientFailure; readonly endless?: ClientFailure };
}

export function judgePlay(situation: Situation, play: Play): Judged {
  if (play.stopped === 'interrupted') return untested(INTERRUPTED);
  if (play.requests.length === 0 && !situation.needs) return untested(situation.unspoken ?? silent(play));
  const met = situation.met?.(play) ?? true;
  if (met !== true && play.stopped === undefined) return untested(met);

  const soldAsWhole = soldFindings(situation, play);
  const endless = play.stopped && stoppedFinding(play, play.stopped);
  const own = situation.judge?.(play) ?? [];
  const gaveUp = play.stopped ? undefined : givenUp(situation, play, own);
  const failures = [
    ...own,
    ...soldAsWhole,
    ...(endless ? [endless] : []),
    ...(gaveUp?.failure ? [gaveUp.failure] : []),
  ];
  const levels = failures.map(({ level }) => (situation.level === 'SHOULD' ? 'SHOULD' : (level ?? 'MUST')));
  const status = levels.includes('MUST') ? 'fail' : levels.length > 0 ? 'warn' : 'pass';
  if (status === 'pass' && !situation.impossible && play.ended.stdout === undefined) return untested(UNSEEN);
  return {
    status,
    ...(gaveUp?.note && status === 'pass' ? { reason: gaveUp.note } : {}),
    failures,
    graver:
      situation.level === 'MUST'
        ? {}
        : {
            ...(soldAsWhole[0] && soldAsWhole[0].level === undefined ? { soldAsWhole: soldAsWhole[0] } : {}),
            ...(endless && endless.level === undefined ? { endless } : {}),
          },
  };
}

const UNSEEN = 'the collected screenings are unknown: redirect the output of the client to the printed file';
export const INTERRUPTED = 'the run was interrupted';

/** A client without requests is untested; the reason contains how it ended. */
function silent({ ended, stopped }: Play): string {
  const said = ended.stderr.trim().split('\n').at(-1)?.slice(0, 300);
  const end = stopped ? 'had to be stopped' : `ended with exit status ${ended.status ?? 'unknown'}`;
  return `the client sent no request, and ${end}${said ? `: ${said}` : ''}`;
}

const untested = (reason: string): Judged => ({ status: 'untested', reason, failures: [], graver: {} });

/** Findings on a client that exited with 0 and thereby declared the window complete. */
function soldFindings({ impossible }: Situation, play: Play): readonly ClientFailure[] {
  const { ended, printed, requests, stopped } = play;
  if (stopped !== undefined || ended.stdout === undefined) return [];
  if (ended.status !== undefined && ended.status !== 0) return [];
  if (!impossible) return collectionFindings(play);
  if (ended.status === undefined) return [];
  return [
    finding(
      'an exit status other than 0: the window could not be had',
      `exit status 0 with ${several(printed.screenings.length, 'screening')}`,
      pageRequests(requests).slice(-3).map(line),
    ),
  ];
}

/** The finding for a client that had to be stopped; a warning if the server failed, since it may have been backing off. */
function stoppedFinding({ requests }: Play, why: 'silent' | 'storm'): ClientFailure {
  const asked = pageRequests(requests);
  const last = asked.slice(-5).map(line);
  if (why === 'storm') {
    return finding(
      'an end after a few retries',
      `${several(asked.length, 'request')} for pages, and no end`,
      last,
    );
  }
  const failing = asked.at(-1) !== undefined && asked.at(-1)!.status >= 500;
  return finding(
    'an end in bounded time',
    'none: the client made no progress within the timeout (--timeout), and was stopped',
    last,
    failing ? 'SHOULD' : undefined,
  );
}

/** The finding for a client that gave up although it could have collected the window. */
function givenUp(
  { impossible, givingUp = 'breaks' }: Situation,
  { ended, requests }: Play,
  own: readonly ClientFailure[],
): { readonly failure?: ClientFailure; readonly note?: string } | undefined {
  if (impossible || ended.status === undefined || ended.status === 0) return undefined;
  if (givingUp === 'allowed')
    return { note: `the client gave up (exit status ${ended.status}), and said so` };
  const said = ended.stderr.trim().split('\n').at(-1)?.slice(0, 200);
  const failure = finding(
    'the window to be collected whole',
    `exit status ${ended.status}${said ? `: ${said}` : ''}`,
    requests.slice(-4).map(line),
    givingUp === 'warns' ? 'SHOULD' : undefined,
  );
  // The cause has already been reported.
  return own.length > 0 ? undefined : { failure };
}
