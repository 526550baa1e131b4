/** junit.xml: one test case a requirement, in the shape that CI systems read. */
import type { Report, RequirementResult } from '../report.ts';
import { changesText, classesText, counts, countsText, evidence, sectionTitle, selected } from './facts.ts';
import { clip, markup, oneLine, type Markup } from './markup.ts';
import { commandLine } from './text.ts';

const LONGEST_TEXT = 4_000;
const LONGEST_PROPERTY = 2_000;

const seconds = (durationMs: number): string => (durationMs / 1000).toFixed(3);

/** The failures of a requirement as plain text, one under the other; each command whole, on its line. */
function detail(report: Report, result: RequirementResult): string {
  const blocks = result.failures.map((failure) =>
    evidence(report, result, failure)
      .flatMap(({ label, texts, kind }) =>
        texts
          .map((text) => (kind === 'command' ? commandLine(text) : clip(text, LONGEST_TEXT)))
          .map((text, i) => `${(i ? '' : label).padEnd(9)} ${text}`),
      )
      .join('\n'),
  );
  const tokens = report.tokenCommands.map((command) => `${'token'.padEnd(9)} ${commandLine(command)}`);
  return [`${result.level} ${result.title}`, ...blocks, ...(blocks.length > 0 ? tokens : [])].join('\n\n');
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

/** Viewers take what stands before the last dot of a class name for a package. */
const className = (section: string): string => `${section.replaceAll('.', '-')} ${sectionTitle(section)}`;

function testcase(report: Report, result: RequirementResult): Markup {
  const names = markup`classname="${className(result.section)}" name="${result.id}" time="${seconds(result.durationMs ?? 0)}"`;
  const inside = outcome(report, result);
  return inside ? markup`<testcase ${names}>${inside}</testcase>` : markup`<testcase ${names}/>`;
}

/** Skipped tests are green in most viewers: a run that proves too little is an error of its own. */
const verdictCase = (report: Report): Markup =>
  markup`<testcase classname="verdict" name="the run is complete" time="0.000"><error type="incomplete" message="${clip(oneLine(report.summary), 500)}"/></testcase>`;

export function junit(report: Report): string {
  const results = selected(report);
  const counted = counts(results);
  const incomplete = report.verdict === 'incomplete' ? 1 : 0;
  const totals = markup`tests="${results.length + incomplete}" failures="${counted.fail}" errors="${counted.error + incomplete}" skipped="${counted.untested}" time="${seconds(report.durationMs)}"`;
  const properties = {
    verdict: report.verdict,
    summary: report.summary,
    counts: countsText(results),
    classes: classesText(report),
    baseUrl: report.target.baseUrl,
    authUrl: report.target.authUrl,
    kit: `${report.kit.name} ${report.kit.version}`,
    seed: report.seed,
    requests: report.requests,
    ...(report.selection && { selection: report.selection.join(',') }),
    ...(report.basis !== undefined && { basis: report.basis }),
    ...Object.fromEntries(changesText(report)),
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
${
  incomplete > 0 &&
  markup`    ${verdictCase(report)}
`
}${results.map(
    (result) => markup`    ${testcase(report, result)}
`,
  )}  </testsuite>
</testsuites>`}\n`;
}
