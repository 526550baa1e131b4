/**
 * What happens in hard times, as a table: `npx tsx certify/proof/hostile-table.ts [--only TEXT]`. certify and load against
 * every server that is none; runs of the kit that are interrupted, have no time or no disk; outages under load; attacks
 * on the reference server. It prints how long each took, the most memory, verdict and exit status. Exit status 1 where
 * one hung, crashed, took too much memory, left no report, called such a server conformant or held, or followed it where
 * nothing may go. `--only` leaves out all but servers of that name.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format } from 'prettier';
import { mapConcurrently } from '../../engine/run/concurrent.ts';
import { DEGENERATE } from '../../reference-server/degenerate/servers.ts';
import type { Address, Degenerate } from '../../reference-server/degenerate/tools.ts';
import type { Report } from '../report.ts';
import { measureHardships } from './hardships.ts';
import { measuredRun } from './measured-run.ts';
import { runTestedCases } from './tested-cases.ts';

const { values } = parseArgs({
  options: {
    /** Only the servers whose name holds the text. */
    only: { type: 'string', default: '' },
    /** Of the command's own flags, such as `--timeout 2`. */
    flags: { type: 'string', default: '' },
    /** How long outages under load last. */
    soak: { type: 'string', default: '10m' },
    /** Writes hostile.md. */
    write: { type: 'boolean', default: false },
  },
});

const MOST_MB = 400;
/** A hung target is settled in a minute, a 429 of a minute waited out; what serves thousands of pages may take longer. */
const LONGEST_S = 150;
/** A load whose generator falls behind is tried again, twice. */
const LONGEST_LOAD_S = 300;
const LONGEST = { longestSeconds: 2 * LONGEST_LOAD_S };
const LOAD = ['smoke', '--duration', '2s', '--rate', '5', '--timeout', '2', '--slo-p99', '5000'];
const AT_ONCE = 6;

interface Row {
  readonly name: string;
  readonly seconds: number;
  readonly megabytes: number;
  readonly requests: number;
  readonly verdict: string;
  readonly status: number | null;
  readonly told: string;
  readonly load: Load;
  readonly wrong: readonly string[];
}

interface Load {
  readonly seconds: number;
  readonly megabytes: number;
  readonly status: number | null;
  /** Of its result; not begun where there is none. */
  readonly result: 'held' | 'broken' | 'void' | 'not begun';
  readonly leaked: readonly string[];
}

async function measure({ name, start }: Degenerate): Promise<Row> {
  await using server = await start();
  const directory = await mkdtemp(join(tmpdir(), 'screenings-hostile-'));
  try {
    const target = await targetFile(server, directory);
    const { seconds, status, megabytes, output } = await measuredRun(
      'certify/main.ts',
      [
        ...['--target', target, '--report-dir', directory, '--seed', '1'],
        ...values.flags.split(' ').filter(Boolean),
      ],
      LONGEST,
    );
    const report = await readFile(join(directory, 'report.json'), 'utf8').then(
      (text) => JSON.parse(text) as Report,
      () => undefined,
    );
    const row = {
      name,
      seconds,
      megabytes,
      requests: report?.requests ?? 0,
      verdict: report?.verdict ?? 'no report',
      status,
      told: report ? told(report) : output.slice(-200),
    };
    const load = await measureLoad(start, directory);
    return {
      ...row,
      load,
      wrong: [...mistakes(row), ...mistakesOfLoad(load), ...(server.leaked?.() ?? []), ...spelt(output)],
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function targetFile({ origin }: Address, directory: string): Promise<string> {
  const primary = { clientId: 'primary-client', clientSecret: 'a secret of nobody' };
  const path = join(directory, 'target.json');
  await writeFile(path, JSON.stringify({ baseUrl: origin, authUrl: origin, clients: { primary } }));
  return path;
}

async function measureLoad(start: Degenerate['start'], directory: string): Promise<Load> {
  await using server = await start();
  const target = await targetFile(server, directory);
  const { seconds, status, megabytes } = await measuredRun(
    'load/main.ts',
    [...LOAD, ...['--target', target, '--report-dir', directory]],
    LONGEST,
  );
  const result = await readFile(join(directory, 'load-smoke.json'), 'utf8').then(
    (text) => JSON.parse(text) as { readonly void: false | string; readonly held: boolean },
    () => undefined,
  );
  return {
    seconds,
    megabytes,
    status,
    result: !result ? 'not begun' : result.void !== false ? 'void' : result.held ? 'held' : 'broken',
    leaked: server.leaked?.() ?? [],
  };
}

/** What the report says first: why the run ended, else the first failure. */
function told({ basis, summary, requirements }: Report): string {
  const failed = requirements.find(({ status }) => status === 'fail');
  return basis ?? (failed ? `${failed.id}: ${failed.failures[0]?.message ?? ''}` : summary);
}

function mistakesOfLoad({ seconds, megabytes, status, result, leaked }: Load): string[] {
  return [
    ...leaked,
    ...(seconds > LONGEST_LOAD_S ? [`load took ${Math.round(seconds)} s`] : []),
    ...(megabytes > MOST_MB ? [`load took ${megabytes} MB`] : []),
    ...(result === 'held' ? ['load: held'] : []),
    ...(status === (result === 'broken' ? 1 : 3) ? [] : [`load: exit status ${status}`]),
  ];
}

function mistakes({ seconds, megabytes, verdict, status }: Omit<Row, 'wrong' | 'load'>): string[] {
  return [
    ...(seconds > LONGEST_S ? [`took ${Math.round(seconds)} s`] : []),
    ...(megabytes > MOST_MB ? [`took ${megabytes} MB`] : []),
    ...(verdict === 'conformant' || verdict === 'no report' ? [verdict] : []),
    ...(status === 1 || status === 3 ? [] : [`exit status ${status}`]),
  ];
}

/** Control characters that reached the terminal. */
const spelt = (output: string): string[] =>
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/.test(output)
    ? ['control characters in the output']
    : [];

const marked = (wrong: readonly string[]): string => (wrong.length > 0 ? `  WRONG: ${wrong.join(', ')}` : '');

const cell = (text: string): string =>
  text
    .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'http://…')
    .replace(/[^\u0020-\u007e\u2026]/g, '·')
    .replace(/([|<>`*_[\]\\])/g, '\\$1')
    .slice(0, 160);

const rows: Row[] = [];
await mapConcurrently(
  DEGENERATE.filter(({ name }) => name.includes(values.only)),
  async (one) => {
    const row = await measure(one);
    rows.push(row);
    const { name, seconds, megabytes, requests, verdict, status, load, wrong } = row;
    console.log(
      `${seconds.toFixed(1).padStart(6)} s ${String(megabytes).padStart(4)} MB ${String(requests).padStart(5)} requests  exit ${status}  ${verdict.padEnd(14)} load ${load.seconds.toFixed(1)} s ${load.megabytes} MB exit ${load.status} ${load.result}  ${name}${marked(wrong)}`,
    );
  },
  AT_ONCE,
);
const order = DEGENERATE.map(({ name }) => name);
rows.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));

const whole = values.only === '';
const hardships = whole
  ? await measureHardships(values.soak, ({ name, run, verdict, wrong }) =>
      console.log(
        `${run.seconds.toFixed(1).padStart(6)} s ${String(run.megabytes).padStart(4)} MB  exit ${run.status}  ${verdict}  ${name}${marked(wrong)}`,
      ),
    )
  : [];
const tested = whole ? await runTestedCases() : [];

if (values.write) {
  const table = [
    '# What happens in hard times',
    '',
    `Made by \`npx tsx certify/proof/hostile-table.ts --write\`. Memory is the most that the process had, Node and the`,
    'TypeScript loader (125 MB) included, k6 not.',
    '',
    '## Targets that are none',
    '',
    `${AT_ONCE} runs at once: certify with its own defaults, and \`load -- ${LOAD.join(' ')}\`.`,
    '',
    '| target | time | memory | requests | verdict | exit status | what the report says | load | exit status | time | memory |',
    '|---|--:|--:|--:|---|--:|---|---|--:|--:|--:|',
    ...rows.map(
      ({ name, seconds, megabytes, requests, verdict, status, told, load }) =>
        `| ${cell(name)} | ${seconds.toFixed(1)} s | ${megabytes} MB | ${requests} | ${verdict} | ${status} | ${cell(told)} | ${load.result} | ${load.status} | ${load.seconds.toFixed(1)} s | ${load.megabytes} MB |`,
    ),
    '',
    '## Runs that are cut short, and outages under load',
    '',
    '| what happens | time | memory | verdict | exit status | what is said | processes left |',
    '|---|--:|--:|---|--:|---|--:|',
    ...hardships.map(
      ({ name, run, verdict, told }) =>
        `| ${cell(name)} | ${run.seconds.toFixed(1)} s | ${run.megabytes} MB | ${verdict} | ${run.status} | ${cell(told)} | ${run.leftOver} |`,
    ),
    '',
    '## Attacks and outages, as tests of them say',
    '',
    '| where | what | time | |',
    '|---|---|--:|---|',
    ...tested.map(
      ({ file, title, seconds, passed }) =>
        `| ${cell(file.replace('.test.ts', ''))} | ${cell(title)} | ${seconds.toFixed(1)} s | ${passed ? 'as it must be' : '**failed**'} |`,
    ),
    '',
  ].join('\n');
  const path = fileURLToPath(new URL('hostile.md', import.meta.url));
  await writeFile(path, await format(table, { parser: 'markdown' }));
}
const wrong = [
  ...rows.filter((row) => row.wrong.length > 0).map(({ name }) => name),
  ...hardships.filter((one) => one.wrong.length > 0).map(({ name }) => name),
  ...tested.filter(({ passed }) => !passed).map(({ title }) => title),
];
console.log(`${rows.length + hardships.length + tested.length} cases, ${wrong.length} wrong`);
for (const name of wrong) console.log(`  ${name}`);
process.exitCode = wrong.length > 0 ? 1 : 0;
process.exit();
