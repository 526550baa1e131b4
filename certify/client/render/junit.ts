/** junit.xml: one test case a situation. */
import { counts } from '../../render/facts.ts';
import { clip, markup, oneLine, type Markup } from '../../render/markup.ts';
import type { ClientReport, SituationResult } from '../report.ts';

const LONGEST_TEXT = 20_000;

const detail = ({ level, title, failures }: SituationResult): string =>
  clip(
    [`${level} ${title}`, ...failures.map(({ message, requests }) => [message, ...requests].join('\n'))].join(
      '\n\n',
    ),
    LONGEST_TEXT,
  );

/** A warning is told, and is no failure; an error of the kit is none either. */
function outcome(result: SituationResult): Markup | undefined {
  const message = clip(oneLine(result.failures[0]?.message ?? result.reason ?? result.title), 500);
  switch (result.status) {
    case 'pass':
      return undefined;
    case 'fail':
      return markup`<failure type="${result.level}" message="${message}">${detail(result)}</failure>`;
    case 'warn':
      return markup`<system-out>warning: ${detail(result)}</system-out>`;
    case 'untested':
      return markup`<skipped message="${message}"/>`;
    case 'error':
      return markup`<error type="kit" message="${message}">${clip(result.reason ?? '', LONGEST_TEXT)}</error>`;
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(3);

export function junit(report: ClientReport): string {
  const counted = counts(report.situations);
  const totals = markup`tests="${report.situations.length}" failures="${counted.fail}" errors="${counted.error}" skipped="${counted.untested}" time="${seconds(report.durationMs)}"`;
  return `${markup`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${oneLine(report.kit.name)}" ${totals}>
  <testsuite name="${clip(oneLine(report.client), 200)}" timestamp="${report.startedAt}" ${totals}>
    <properties>
      <property name="verdict" value="${report.verdict}"/>
      <property name="summary" value="${clip(oneLine(report.summary), 2_000)}"/>
    </properties>
${report.situations.map(
  (
    result,
  ) => markup`    <testcase classname="client ${result.section}" name="${result.name}" time="${seconds(result.durationMs)}">${outcome(result)}</testcase>
`,
)}  </testsuite>
</testsuites>`}\n`;
}
