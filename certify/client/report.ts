/** The schema of client.json: what a client did in each situation, and the findings. */
import type { Level } from '../../engine/requirements.ts';
import type { Status, Verdict } from '../report/report.ts';
import { type TimelineEntry, inWords, timeline } from '../render/pictures.ts';
import { markup } from '../render/markup.ts';
import { limitedTo, mismatchLines, withoutEmpty, words, durationText } from '../render/results.ts';
import type { Item, Results } from '../render/results.ts';

export interface ClientFailure {
  /** `expected …, got …` */
  readonly message: string;
  readonly expected: string;
  readonly received: string;
  readonly requests: readonly string[];
  /** Absent: the level of the situation. A SHOULD in a MUST situation is a warning. */
  readonly level?: Level;
}

export interface Rule {
  readonly name: string;
  readonly section: string;
  readonly level: Level;
  readonly title: string;
  /** Where to look for the mistake, the most likely cause first. */
  readonly lookAt: readonly string[];
}

export interface SituationResult extends Rule {
  readonly status: Status;
  /** Why it is untested, the error of the kit, or what could not be checked although it passed. */
  readonly reason?: string;
  readonly failures: readonly ClientFailure[];
  readonly durationMs: number;
  /** Absent for rules that are judged over all situations. */
  readonly timeline?: readonly TimelineEntry[];
}

export interface ClientReport {
  readonly verdict: Verdict;
  /** One sentence on what the verdict is based on. */
  readonly summary: string;
  readonly kit: { readonly name: string; readonly version: string };
  /** The command, or how the client was started. */
  readonly client: string;
  readonly startedAt: string;
  readonly durationMs: number;
  /** The situations selected by `--only`; absent for a whole run. */
  readonly selection?: readonly string[];
  readonly situations: readonly SituationResult[];
}

// -- the report as results, for all formats --------------------------------------------------------

export const resultsOf = ({ client, situations, selection, ...report }: ClientReport): Results => ({
  kind: 'report on a client',
  noun: 'situation',
  title: client,
  ...report,
  remarks: selection ? [['selection', limitedTo(selection)]] : [],
  reach: `of ${situations.length} situations`,
  items: situations.map(itemOf),
  ...{ facts: [], causes: [], changes: [], tables: [], tokenCommands: [] },
  legend: markup`<p class="muted">In each picture a bar is a request of the client, with the duration of its answer as its length: a gap is a wait.</p>
<ul class="tally"><li class="pass">low bar: answered well</li><li class="warn">middle: 401 or 429</li><li class="fail">tall: refused, failed or broken off</li></ul>`,
  files: { data: 'client.json', html: 'client.html', junit: 'client-junit.xml' },
});

function itemOf(result: SituationResult): Item {
  const { name, section, level, title, status, failures, reason = '', lookAt, durationMs } = result;
  const requests = result.timeline && {
    ...words('traffic', inWords(result.timeline)),
    picture: timeline(result.timeline),
  };
  const [first = [], ...others] = failures.map((failure) => [
    ...mismatchLines(failure),
    { label: 'requests', texts: failure.requests, kind: 'line' } as const,
  ]);
  return {
    ...{ id: name, section, level, title, status, durationMs },
    message: failures[0]?.message ?? reason,
    asides: [`section ${section}`, ...(durationMs > 0 ? [durationText(durationMs)] : [])],
    blocks: [
      [
        ...first,
        ...(failures.length > 0 ? [words('look at', ...lookAt)] : []),
        words(status === 'error' ? 'kit error' : 'note', reason),
        ...(requests ? [requests] : []),
      ],
      ...others,
    ].map(withoutEmpty),
  };
}
