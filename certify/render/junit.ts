/** junit.xml: one test case a requirement, in the shape that CI systems read. */
import type { Report, RequirementResult } from '../report.ts';
import { classesText, counts, countsText, evidence } from './facts.ts';
import { clip, markup, oneLine, type Markup } from './markup.ts';

const LONGEST_TEXT = 20_000;
const LONGEST_PROPERTY = 2_000;

const seconds = (durationMs: number): string => (durationMs / 1000).toFixed(3);

/** The failures of a requirement as plain text, one under the other. */
function detail(report: Report, result: RequirementResult): string {
  const blocks = result.failures.map((failure) =>
    evidence(report, result, failure)
      .flatMap(({ label, texts }) => texts.map((text, i) => `${(i ? '' : label).padEnd(9)} ${text}`))
      .join('\n'),
  );
  return clip([`${result.level} ${result.title}`, ...blocks].join('\n\n'), LONGEST_TEXT);
}

/** A broken SHOULD is told, and is no failure; an error of the kit is an error, and no failure either. */
function outcome(report: Report, result: RequirementResult): Markup | undefined {
  const message = clip(oneLine(result.failures[0]?.message ?? result.reason ?? result.title), 500);
  switch (result.status) {
    case 'pass':
      return undefined;
    case 'fail':
      return markup`<failure type="${result.level}" message="${message}">${detail(report, result)}</failure>`;
    case 'warn':
      return markup`<system-out>warning: ${detail(report, result)}</system-out>`;
    case 'untested':
      return markup`<skipped message="${message}"/>`;
    case 'error':
      return markup`<error type="kit" message="${message}">${clip(result.reason ?? '', LONGEST_TEXT)}</error>`;
  }
}

function testcase(report: Report, result: RequirementResult): Markup {
  const names = markup`classname="${result.section}" name="${result.id}"`;
  const inside = outcome(report, result);
  return inside ? markup`<testcase ${names}>${inside}</testcase>` : markup`<testcase ${names}/>`;
}

export function junit(report: Report): string {
  const counted = counts(report.requirements);
  const totals = markup`tests="${report.requirements.length}" failures="${counted.fail}" errors="${counted.error}" skipped="${counted.untested}" time="${seconds(report.durationMs)}"`;
  const properties = {
    verdict: report.verdict,
    summary: report.summary,
    counts: countsText(report.requirements),
    classes: classesText(report),
    baseUrl: report.target.baseUrl,
    authUrl: report.target.authUrl,
    kit: `${report.kit.name} ${report.kit.version}`,
    seed: report.seed,
    requests: report.requests,
    ...(report.selection && { selection: report.selection.join(',') }),
    ...(report.basis !== undefined && { basis: report.basis }),
    replay: report.replay,
  };
  return `${markup`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${oneLine(report.kit.name)}" ${totals}>
  <testsuite name="${clip(oneLine(report.target.name), 200)}" timestamp="${report.startedAt}" ${totals}>
    <properties>
${Object.entries(properties).map(
  ([
    name,
    value,
  ]) => markup`      <property name="${name}" value="${clip(oneLine(String(value)), LONGEST_PROPERTY)}"/>
`,
)}    </properties>
${report.requirements.map(
  (result) => markup`    ${testcase(report, result)}
`,
)}  </testsuite>
</testsuites>`}\n`;
}
