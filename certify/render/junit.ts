/** Renders the report as JUnit XML with one test case per item, in the form that CI systems read. */
import { clip, markup, oneLine, type Markup } from './markup.ts';
import { counts, countsText, factsOf, sectionTitle, type Item, type Results, pastable } from './results.ts';

const LONGEST_TEXT = 4_000;
const LONGEST_PROPERTY = 2_000;

const seconds = (durationMs: number): string => (durationMs / 1000).toFixed(3);

/** The failures of an item as plain text; every command stays complete on its own line. */
function detail({ tokenCommands }: Results, { level, title, blocks }: Item): string {
  const texts = blocks.map((lines) =>
    lines
      .flatMap(({ label, texts: own, kind }) =>
        own
          .map((text) => (kind === 'command' ? pastable(text) : clip(text, LONGEST_TEXT)))
          .map((text, i) => `${(i ? '' : label).padEnd(9)} ${text}`),
      )
      .join('\n'),
  );
  const tokens = tokenCommands.map((command) => `${'token'.padEnd(9)} ${pastable(command)}`);
  return [`${level} ${title}`, ...texts, ...tokens].join('\n\n');
}

/** A broken SHOULD is only printed; an error of the kit is an error instead of a failure. */
function outcome(results: Results, item: Item): Markup | undefined {
  const message = clip(oneLine(item.message || item.title), 500);
  switch (item.status) {
    case 'pass':
      return undefined;
    case 'fail':
      return markup`<failure type="${item.level}" message="${message}">${detail(results, item)}</failure>`;
    case 'warn':
      return markup`<system-out>warning: ${detail(results, item)}</system-out>`;
    case 'untested':
      return markup`<skipped message="${message}"/>`;
    case 'error':
      return markup`<error type="kit" message="${message}">${clip(item.message, LONGEST_TEXT)}</error>`;
  }
}

/** Without dots: viewers read the text before the last dot of a class name as a package. */
const className = (section: string): string => `${section.replaceAll('.', '-')} ${sectionTitle(section)}`;

function testcase(results: Results, item: Item): Markup {
  const names = markup`classname="${className(item.section)}" name="${item.id}" time="${seconds(item.durationMs)}"`;
  const inside = outcome(results, item);
  return inside ? markup`    <testcase ${names}>${inside}</testcase>\n` : markup`    <testcase ${names}/>\n`;
}

/** Most viewers show skipped tests as green, so an incomplete run adds an error. */
const verdictCase = ({ summary }: Results): Markup =>
  markup`    <testcase classname="verdict" name="the run is complete" time="0.000"><error type="incomplete" message="${clip(oneLine(summary), 500)}"/></testcase>\n`;

export function junit(results: Results): string {
  const { items, verdict, kit, durationMs } = results;
  const counted = counts(items);
  const incomplete = verdict === 'incomplete' ? 1 : 0;
  const totals = markup`tests="${items.length + incomplete}" failures="${counted.fail}" errors="${counted.error + incomplete}" skipped="${counted.untested}" time="${seconds(durationMs)}"`;
  const properties = [
    ['verdict', verdict],
    ['summary', results.summary],
    ['counts', countsText(items)],
    ...factsOf(results, 'junit'),
    ['kit', `${kit.name} ${kit.version}`],
    ...results.remarks,
    ...results.changes,
    ['replay', results.replay ?? ''],
  ] as const;
  const rows = properties
    .filter(([, value]) => value !== '')
    .map(
      ([name, value]) =>
        markup`      <property name="${name}" value="${clip(oneLine(value), LONGEST_PROPERTY)}"/>\n`,
    );
  return `${markup`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${oneLine(kit.name)}" ${totals}>
  <testsuite name="${clip(oneLine(results.title), 200)}" timestamp="${results.startedAt}" ${totals}>
    <properties>
${rows}    </properties>
${incomplete > 0 && verdictCase(results)}${items.map((item) => testcase(results, item))}  </testsuite>
</testsuites>`}\n`;
}
