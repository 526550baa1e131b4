/** Converts the report on a client to results. */
import { markup } from '../render/markup.ts';
import {
  limitedTo,
  messageLines,
  withoutEmpty,
  words,
  durationText,
  type Item,
  type Results,
} from '../render/results.ts';
import { inWords, timeline } from '../render/timeline.ts';
import type { ClientReport, SituationResult } from './report.ts';

export const resultsOf = (report: ClientReport): Results => ({
  kind: 'report on a client',
  noun: 'situation',
  title: report.client,
  verdict: report.verdict,
  summary: report.summary,
  kit: report.kit,
  startedAt: report.startedAt,
  durationMs: report.durationMs,
  remarks: report.selection ? [['selection', limitedTo(report.selection)]] : [],
  reach: `of ${report.situations.length} situations`,
  facts: [],
  items: report.situations.map(itemOf),
  causes: [],
  changes: [],
  tables: [],
  tokenCommands: [],
  legend: markup`<p class="muted">In each picture a bar is a request of the client, with the duration of its answer as its length: a gap is a wait.</p>
<ul class="tally"><li class="pass">low bar: answered well</li><li class="warn">middle: 401 or 429</li><li class="fail">tall: refused, failed or broken off</li></ul>`,
  files: { data: 'client.json', page: 'client.html', junit: 'client-junit.xml' },
});

function itemOf(result: SituationResult): Item {
  const { name, section, level, title, status, failures, reason = '', lookAt, durationMs } = result;
  const requests = result.timeline && {
    ...words('traffic', inWords(result.timeline)),
    picture: timeline(result.timeline),
  };
  const [first = [], ...others] = failures.map((failure) => [
    ...messageLines(failure),
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
