/**
 * One certification under Playwright: a kit for the whole worker. Inside `npm run certify` a broken
 * requirement is data and no test throws, because Playwright gives each failed test a new worker and
 * what the kit knows of the target would be lost; run by hand, a test fails for what it found.
 */
import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test as base } from '@playwright/test';
import { buildReport } from '../certify/build-report.ts';
import { kitOptions, selectProbes } from '../certify/certify.ts';
import type { Report } from '../certify/report.ts';
import { Kit, type KitOptions } from '../fixtures/run/kit.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { preconditionsOf, runProbe } from '../fixtures/run/run-probe.ts';
import type { RequirementId } from '../fixtures/requirements.ts';
import { loadTarget, resolveTarget, type Target } from '../fixtures/target/target.ts';
import { LAWS } from '../properties/laws.ts';
import { startReferenceServer } from '../reference-server/start.ts';
import { PROBES } from './probes.ts';

/** What `npm run certify` hands to the specs; the file is named by SCREENINGS_RUN. */
export interface RunFile {
  /** A target file, or its content with the directory that its paths are relative to. */
  readonly target: { readonly file: string } | { readonly content: unknown; readonly directory: string };
  readonly dataset?: string | undefined;
  readonly only?: readonly RequirementId[] | undefined;
  readonly options: Partial<KitOptions>;
  readonly replay: string;
  /** Where results are left. */
  readonly directory: string;
}

export const RESULT = 'report.json';
export const CHECKPOINT = 'checkpoint.json';
const CHECKPOINT_EVERY_MS = 1_000;

/** What the command line handed over; undefined where Playwright was run by hand. */
export async function readRunFile(): Promise<RunFile | undefined> {
  const path = process.env['SCREENINGS_RUN'];
  return path ? (JSON.parse(await readFile(path, 'utf8')) as RunFile) : undefined;
}

export interface Session {
  /** Runs a probe; what it broke of its own requirements, in words, where run by hand. */
  run(probe: Probe): Promise<readonly string[]>;
}

export async function targetOf({ target, dataset }: RunFile): Promise<Target> {
  const resolved =
    'file' in target
      ? await loadTarget(target.file)
      : await resolveTarget(target.content, { directory: target.directory });
  if (!dataset) return resolved;
  const { readDataset } = await import('../fixtures/data/dataset.ts');
  return { ...resolved, dataset: await readDataset(dataset) };
}

/** The test of the specs and laws, with the session that they share. */
export const test = base.extend<object, { session: Session }>({
  session: [
    async ({}, use) => {
      const file = await readRunFile();
      await using reference =
        file || process.env['SCREENINGS_TARGET'] ? undefined : await startReferenceServer();
      const target = file
        ? await targetOf(file)
        : reference
          ? await resolveTarget({ ...reference.target() })
          : await loadTarget(process.env['SCREENINGS_TARGET']!);
      await using kit = new Kit(target, kitOptions(file?.options ?? {}));
      const facts = factsOf(kit, file);
      let written = 0;
      await use({
        async run(probe) {
          await runProbe(kit, probe);
          if (file && Date.now() - written > CHECKPOINT_EVERY_MS) {
            await leave(
              file.directory,
              CHECKPOINT,
              buildReport(kit, await facts('the run was ended before its end')),
            );
            written = Date.now();
          }
          return file ? [] : complaintsOf(kit, probe);
        },
      });
      await kit.conclude();
      if (file) await leave(file.directory, RESULT, buildReport(kit, await facts(kit.client.gone)));
    },
    { scope: 'worker', timeout: 0 },
  ],
});

type Facts = (interrupted: string | undefined) => Promise<Parameters<typeof buildReport>[1]>;

function factsOf(kit: Kit, file: RunFile | undefined): Facts {
  const startedAt = new Date();
  return async (interrupted) => ({
    startedAt,
    durationMs: Date.now() - startedAt.getTime(),
    planned: selectProbes([...PROBES, ...LAWS], file?.only).length,
    selection: file?.only,
    basis: await preconditionsOf(kit).catch(() => ({})),
    replay: file?.replay ?? '',
    interrupted,
  });
}

function complaintsOf(kit: Kit, { ids }: Probe): string[] {
  return kit.ledger.findings
    .filter(({ id }) => ids.includes(id))
    .map(({ id, mismatch }) => `${id}: expected ${mismatch.expected}, got ${mismatch.received}`);
}

/** Whole or not at all, and for the owner's eyes only. */
async function leave(directory: string, name: string, report: Report): Promise<void> {
  const path = join(directory, name);
  await writeFile(`${path}.tmp`, JSON.stringify(report), { mode: 0o600 });
  await chmod(`${path}.tmp`, 0o600);
  await rename(`${path}.tmp`, path);
}

/** Registers a test for each probe. */
export function register(probes: readonly Probe[], only: readonly RequirementId[] | undefined): void {
  for (const probe of selectProbes(probes, only)) {
    test(`${probe.name} (${probe.ids.join(' ')})`, async ({ session }) => {
      test.setTimeout(0);
      const mismatches = await session.run(probe);
      if (mismatches.length > 0) throw new Error(mismatches.join('\n'));
    });
  }
}
