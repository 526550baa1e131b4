/** Runs of the kit under difficult conditions: Ctrl-C at various moments, a deadline, a full disk. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measuredRun, type Circumstances, type MeasuredRun } from './measured-run.ts';
import type { Report } from '../report.ts';

interface Hardship {
  readonly run: MeasuredRun;
  readonly wrong: readonly string[];
}

export interface Case {
  readonly name: string;
  readonly main: string;
  /** @param directory an empty folder for this case */
  readonly args: (directory: string) => readonly string[];
  readonly circumstances?: Partial<Circumstances>;
  readonly status: number;
  /** Matches the line that reports the problem. */
  readonly words: RegExp;
  readonly verdicts: readonly string[];
}

const NONE = 'no report';
const certify = { main: 'certify/main.ts', args: (directory: string) => ['--report-dir', directory] };

export const CASES: readonly Case[] = [
  ...[0, 0.5, 1, 2, 4, 8].map((seconds) => ({
    ...certify,
    name: `Ctrl-C ${seconds} s after the first word of certify with its own server`,
    circumstances: { interruptedAfterMs: seconds * 1000 },
    status: 130,
    words: /interrupted/,
    // Interrupted before the first request, a run writes no report.
    verdicts: ['incomplete', NONE],
  })),
  {
    ...certify,
    name: 'a deadline of 2 s',
    args: (directory) => [...certify.args(directory), '--deadline', '2'],
    status: 3,
    words: /ended by --deadline 2/,
    verdicts: ['incomplete'],
  },
  {
    ...certify,
    name: 'a report folder that is a file',
    args: () => ['--report-dir', 'package.json'],
    status: 2,
    words: /the report can't be written/,
    verdicts: [NONE],
  },
  {
    ...certify,
    name: 'no room for the report on the disk',
    args: (directory) => ['--target', join(directory, 'target.json'), ...certify.args(directory)],
    circumstances: { fileKilobytes: 8 },
    // Nothing was tested; a conformant run whose report cannot be written exits with 4.
    status: 3,
    words: /report\.json.* could not be written: EFBIG/,
    verdicts: [NONE],
  },
  {
    name: 'Ctrl-C under load',
    main: 'load/main.ts',
    args: (directory) => ['soak', '--screenings', '2000', '--report-dir', directory],
    circumstances: { interruptedAfterMs: 12_000 },
    status: 130,
    words: /VOID: interrupted/,
    verdicts: [NONE],
  },
];

export async function measure({
  main,
  args,
  circumstances,
  status,
  words,
  verdicts,
}: Case): Promise<Hardship> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-hardship-'));
  try {
    // Nothing listens at this address.
    const address = 'http://127.0.0.1:1';
    const clients = { primary: { clientId: 'nobody', clientSecret: 'a secret of nobody' } };
    await writeFile(
      join(directory, 'target.json'),
      JSON.stringify({ baseUrl: address, authUrl: address, clients }),
    );
    const run = await measuredRun(main, args(directory), { longestSeconds: 1200, ...circumstances });
    const verdict = await readFile(join(directory, 'report.json'), 'utf8').then(
      (text) => (JSON.parse(text) as Report).verdict,
      () => NONE,
    );
    const told = words.exec(run.output.replace(/\n {4,}/g, ' '));
    return {
      run,
      wrong: [
        ...(run.status === status ? [] : [`exit status ${run.status}`]),
        ...(told ? [] : [`does not say ${words}`]),
        ...(verdicts.includes(verdict) ? [] : [verdict]),
        ...(run.leftOver === 0 ? [] : [`${run.leftOver} processes run on`]),
        ...(/^ +at .*:\d+:\d+/m.test(run.output) ? ['a stack'] : []),
      ],
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
