/** The command line and Playwright run the same checks: they find the same faults, and neither passes without a server. */
import { fc, FULL, SEED } from '../../fixtures/own-tests/tiers.ts';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from '@playwright/test';
import { loadTarget } from '../../engine/target/target.ts';
import { UNREACHABLE } from '../../engine/testing.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { starting, test } from '../../reference-server/testing.ts';
import { SPECS } from '../../specs/all.ts';
import { certify } from '../certify.ts';
import { needsWalks } from './faults.ts';
import type { HostedTarget } from './hosts.config.ts';

/** How many of the drawn faults need traversals; the others need only a few requests each. */
const WALKED = 2;
const DRAWN = 6;
/** Found before its test, which is skipped for that reason. */
const FOUND_EARLY = 'pageSize 1000 is refused';
/** Of one test. */
const UNREACHED = '4.2-pageSize-bounds';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface JsonSuite {
  readonly suites?: readonly JsonSuite[];
  readonly specs?: readonly {
    readonly tests: readonly {
      readonly projectName: string;
      readonly results: readonly { status: string; attachments: readonly { name: string }[] }[];
    }[];
  }[];
}

/** The requirements that Playwright's tests found broken, and the number of failed tests, per project. */
async function underPlaywright(targets: readonly HostedTarget[]) {
  const cli = createRequire(import.meta.url).resolve('@playwright/test/cli');
  const config = join(ROOT, 'certify/proof/hosts.config.ts');
  const env = { ...process.env, CI: '', SEED: String(SEED) };
  const output = await new Promise<string>((done) =>
    execFile(
      process.execPath,
      [cli, 'test', `--config=${config}`],
      { cwd: ROOT, env: { ...env, HOSTED_TARGETS: JSON.stringify(targets) }, maxBuffer: 2 ** 28 },
      (_, stdout) => done(stdout),
    ),
  );
  const found = new Map(targets.map(({ name }) => [name, { ids: new Set<string>(), red: 0 }]));
  const visit = ({ suites = [], specs = [] }: JsonSuite): void => {
    suites.forEach(visit);
    for (const { projectName, results } of specs.flatMap(({ tests }) => tests)) {
      const seen = found.get(projectName)!;
      for (const { status, attachments } of results) {
        if (status === 'failed') seen.red += 1;
        for (const { name } of attachments) seen.ids.add(name.split(':')[0]!);
      }
    }
  };
  visit(JSON.parse(output) as JsonSuite);
  return found;
}

/** By the time of the second host, the expired token of the target file is older than that. */
const TRANSIENT = 'accepts tokens for twenty minutes after exp';

/** Tests of the fault's requirements. Most of them fail, and Playwright starts another worker after each failed one. */
const testsOf = (fault: Fault): number =>
  SPECS.filter(({ ids }) => tripped(fault).some((id) => ids.includes(id))).length;
const MOST_TESTS = 4;

/** They need nothing but a server, which both hosts use: it must not keep what the first one writes. */
const comparable = (fault: Fault): boolean =>
  testsOf(fault) <= MOST_TESTS &&
  !fault.target &&
  !fault.large &&
  !fault.needsNeighbours &&
  !tripped(fault).includes('1-read-only') &&
  fault.name !== TRANSIENT;

test(`both hosts find the same on ${DRAWN} faults; a closed port is red in both`, FULL, async ({ small }) => {
  test.setTimeout(1_200_000);
  const draw = (faults: readonly Fault[], count: number): Fault[] =>
    fc.sample(fc.shuffledSubarray([...faults], { minLength: count, maxLength: count }), {
      numRuns: 1,
      seed: SEED,
    })[0]!;
  const walked = (fault: Fault): boolean => tripped(fault).some(needsWalks);
  const faults = FAULTS.filter(comparable);
  const drawn = [
    ...faults.filter(({ name }) => name === FOUND_EARLY),
    ...draw(faults.filter(walked), WALKED),
    ...draw(
      faults.filter((fault) => !walked(fault) && fault.name !== FOUND_EARLY),
      DRAWN - WALKED - 1,
    ),
  ];
  const directory = test.info().outputPath();
  const hosted: HostedTarget[] = [];
  const byCertify: Record<string, string[]> = {};
  await starting(small, async (start) => {
    for (const [index, fault] of drawn.entries()) {
      const server = await start(fault.server);
      const file = join(directory, `target-${index}.json`);
      const { fault: _, ingest: __, ...said } = server.target();
      await writeFile(file, JSON.stringify(said));
      const own = tripped(fault);
      const grep = `${own.map((id) => `@${id}( |$)`).join('|')}|every exchange of the run`;
      hosted.push({ name: fault.name, file, grep });
      const options = { checks: SPECS, only: own, seed: SEED, pollingScale: 0.1 };
      const report = await certify(await loadTarget(file), options);
      const broken = report.requirements.filter(({ status }) => status === 'fail' || status === 'warn');
      byCertify[fault.name] = broken.map(({ id }) => id).sort();
    }
    const closed = join(directory, 'closed.json');
    await writeFile(closed, JSON.stringify(UNREACHABLE));
    hosted.push({ name: 'closed port', file: closed, grep: `@${UNREACHED}( |$)` });

    const found = await underPlaywright(hosted);
    const foundOf = (fault: Fault): string[] =>
      tripped(fault)
        .filter((id) => found.get(fault.name)!.ids.has(id))
        .sort();
    expect(Object.fromEntries(drawn.map((fault) => [fault.name, foundOf(fault)]))).toEqual(byCertify);
    expect(found.get('closed port')!.red).toBeGreaterThan(0);
    expect((await certify(await loadTarget(closed), { only: [UNREACHED] })).verdict).toBe('incomplete');
  });
});
