/**
 * The command against every server that is none: `npx tsx certify/proof/hostile-table.ts [--only TEXT]` prints how long
 * it took, the most memory it had, verdict and exit status. Exit status 1 where a run hung, crashed, took too much
 * memory, left no report, called the server conformant, or followed it where nothing may go.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format } from 'prettier';
import { sideBySide } from '../../fixtures/run/probe.ts';
import { DEGENERATE } from '../../reference-server/degenerate/servers.ts';
import type { Degenerate } from '../../reference-server/degenerate/tools.ts';
import type { Report } from '../report.ts';

const { values } = parseArgs({
  options: {
    /** Only the servers whose name holds the text. */
    only: { type: 'string', default: '' },
    /** Of the command's own flags, such as `--timeout 2`. */
    flags: { type: 'string', default: '' },
    /** Writes hostile-targets.md. */
    write: { type: 'boolean', default: false },
  },
});

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MOST_MB = 400;
/** A hung target is settled in a minute, a 429 of a minute waited out; what serves thousands of pages may take longer. */
const LONGEST_S = 150;
const AT_ONCE = 4;

/**
 * Tells the most memory that the process had, in kilobytes, on file descriptor 3. What the kernel's own accounting
 * says of a child begins with its parent's, before that became the child.
 */
const TELL_MEMORY = `import { readFileSync, writeSync } from 'node:fs';
process.on('exit', () => {
  let most;
  try { most = /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]; }
  catch { most = process.resourceUsage().maxRSS; }
  writeSync(3, String(most));
});`;

interface Row {
  readonly name: string;
  readonly seconds: number;
  readonly megabytes: number;
  readonly requests: number;
  readonly verdict: string;
  readonly status: number | null;
  readonly told: string;
  readonly wrong: readonly string[];
}

async function measure({ name, start }: Degenerate): Promise<Row> {
  await using server = await start();
  const directory = await mkdtemp(join(tmpdir(), 'screenings-hostile-'));
  try {
    const { origin } = server;
    const primary = { clientId: 'primary-client', clientSecret: 'a secret of nobody' };
    const target = join(directory, 'target.json');
    await writeFile(target, JSON.stringify({ baseUrl: origin, authUrl: origin, clients: { primary } }));
    const began = performance.now();
    const { status, memory, output } = await run([
      '--target',
      target,
      '--report-dir',
      directory,
      '--seed',
      '1',
    ]);
    const seconds = (performance.now() - began) / 1000;
    const report = await readFile(join(directory, 'report.json'), 'utf8').then(
      (text) => JSON.parse(text) as Report,
      () => undefined,
    );
    const row = {
      name,
      seconds,
      megabytes: Math.round(memory / 1024),
      requests: report?.requests ?? 0,
      verdict: report?.verdict ?? 'no report',
      status,
      told: report ? told(report) : output.slice(-200),
    };
    return { ...row, wrong: [...mistakes(row), ...(server.leaked?.() ?? []), ...spelt(output)] };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** What the report says first: why the run ended, else the first failure. */
function told({ basis, summary, requirements }: Report): string {
  const failed = requirements.find(({ status }) => status === 'fail');
  return basis ?? (failed ? `${failed.id}: ${failed.failures[0]?.message ?? ''}` : summary);
}

function mistakes({ seconds, megabytes, verdict, status }: Omit<Row, 'wrong'>): string[] {
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

function run(args: readonly string[]): Promise<{ status: number | null; memory: number; output: string }> {
  const tell = `data:text/javascript,${encodeURIComponent(TELL_MEMORY)}`;
  const more = values.flags.split(' ').filter(Boolean);
  const child = spawn(
    process.execPath,
    ['--import', tell, '--import', 'tsx', 'certify/main.ts', ...args, ...more],
    {
      cwd: ROOT,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      timeout: 2 * LONGEST_S * 1000,
      killSignal: 'SIGKILL',
    },
  );
  let [output, memory] = ['', ''];
  for (const index of [1, 2]) child.stdio[index]!.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stdio[3]!.on('data', (chunk: Buffer) => (memory += chunk.toString()));
  return new Promise((done) =>
    child.once('close', (status) => done({ status, memory: Number(memory), output })),
  );
}

const cell = (text: string): string =>
  text
    .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'http://…')
    .replace(/[^\u0020-\u007e\u2026]/g, '·')
    .replace(/([|<>`*_[\]\\])/g, '\\$1')
    .slice(0, 160);

const rows: Row[] = [];
await sideBySide(
  DEGENERATE.filter(({ name }) => name.includes(values.only)),
  async (one) => {
    const row = await measure(one);
    rows.push(row);
    const { name, seconds, megabytes, requests, verdict, status, wrong } = row;
    const marks = wrong.length > 0 ? `  WRONG: ${wrong.join(', ')}` : '';
    console.log(
      `${seconds.toFixed(1).padStart(6)} s ${String(megabytes).padStart(4)} MB ${String(requests).padStart(5)} requests  exit ${status}  ${verdict.padEnd(14)} ${name}${marks}`,
    );
  },
  AT_ONCE,
);
const order = DEGENERATE.map(({ name }) => name);
rows.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));

if (values.write) {
  const table = [
    '# What happens with targets that are none',
    '',
    `Made by \`npx tsx certify/proof/hostile-table.ts --write\`, ${AT_ONCE} runs at once, with the command's own defaults. Memory is`,
    'the most that the process had, Node and the TypeScript loader (125 MB) included.',
    '',
    '| target | time | memory | requests | verdict | exit status | what the report says |',
    '|---|--:|--:|--:|---|--:|---|',
    ...rows.map(
      ({ name, seconds, megabytes, requests, verdict, status, told }) =>
        `| ${cell(name)} | ${seconds.toFixed(1)} s | ${megabytes} MB | ${requests} | ${verdict} | ${status} | ${cell(told)} |`,
    ),
    '',
  ].join('\n');
  const path = fileURLToPath(new URL('hostile-targets.md', import.meta.url));
  await writeFile(path, await format(table, { parser: 'markdown' }));
}
const wrong = rows.filter((row) => row.wrong.length > 0);
console.log(`${rows.length} targets, ${wrong.length} wrong`);
process.exitCode = wrong.length > 0 ? 1 : 0;
process.exit();
