/**
 * Every law against the mistakes that it must find: `npx tsx certify/proof/law-table.ts [--seeds 20]` prints how often
 * it does within the default number of runs. Exit status 1 where that is less than 19 times in 20, and, with
 * `--checks`, where a law has no fault that the checks alone don't see.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format } from 'prettier';
import { certify } from '../certify.ts';
import { DEFAULTS } from '../../engine/run/kit.ts';
import { openDatabase } from '../../reference-server/store/database.ts';
import { defaultProvisioning, loadProvisioning } from '../../reference-server/run/provisioning.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { SPECS } from '../../specs/all.ts';
import { LAW_FAULTS, type LawFault } from './law-faults.ts';
import { lawNamed, LAWS } from '../../properties/laws.ts';
import { counterexampleOf, resolvedTarget, lawTargetOf } from './law-testing.ts';

const ENOUGH = 19 / 20;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    /** Only the faults whose name, or whose law's, holds the text. */
    only: { type: 'string', default: '' },
    /** Says as well what the checks alone say of the fault. */
    checks: { type: 'boolean', default: false },
    /** Writes README.md, with the checks. */
    write: { type: 'boolean', default: false },
  },
});
const seeds = Number(values.seeds);
const withProbes = values.checks || values.write;

await using database = await openDatabase('embedded');
await using provisioned = await loadProvisioning(database, defaultProvisioning());
await using clean = await startServer(database, provisioned);
const known = await resolvedTarget(clean);

/** How often a law finds a fault, with how many requests, and which requirements fail by the checks alone. */
async function measure({ law, server: options, mode }: LawFault) {
  await using server = await startServer(database, provisioned, options);
  const target = await lawTargetOf(server, mode, known);
  // Counterexamples need not be small here.
  const check = lawNamed(law).shrunkBy(0);
  let caught = 0;
  let requests = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const report = await certify(target, { checks: [check], seed, runs: DEFAULTS.runs });
    if (counterexampleOf(report, law)) caught += 1;
    requests += report.requests;
  }
  const byProbes = withProbes ? (await certify(target, { checks: SPECS, seed: 1 })).requirements : [];
  return {
    caught,
    requests: Math.round(requests / seeds),
    byProbes: byProbes.filter(({ status }) => status === 'fail').map(({ id }) => id),
  };
}

const lines = [
  `| law | fault | caught | requests |${withProbes ? ' by checks |' : ''}`,
  `|---|---|---|---|${withProbes ? '---|' : ''}`,
];
console.log(lines.join('\n'));
let missed = 0;
/** Laws with a fault that no check sees. */
const alone = new Set<string>();
for (const fault of LAW_FAULTS) {
  if (!fault.law.includes(values.only) && !fault.name.includes(values.only)) continue;
  const { caught, requests, byProbes } = await measure(fault);
  if (caught < ENOUGH * seeds) missed += 1;
  const cells = [fault.law, fault.name, `${caught} of ${seeds}`, String(requests)];
  if (withProbes) cells.push(byProbes.join(', ') || 'none');
  if (byProbes.length === 0) alone.add(fault.law);
  lines.push(`| ${cells.join(' | ')} |`);
  console.log(lines.at(-1));
}
const shown = withProbes && values.only === '' ? LAWS.filter(({ law }) => !alone.has(law)) : [];
for (const { law } of shown) console.error(`the checks alone see every fault of: ${law}`);
process.exitCode = missed > 0 || shown.length > 0 ? 1 : 0;

if (values.write) {
  const report = await certify(
    { ...known, ingest: (lines) => clean.ingest(lines) },
    { checks: LAWS, seed: 1 },
  );
  const text = [
    '# Laws',
    '',
    'What holds on any data. fast-check draws the cases from what is known of the target: windows with edges at ' +
      'and beside its own instants, page sizes, starting pairs, spellings, malformed queries. A law that fails ' +
      'shows the smallest case it found as a script, with the seed that replays it. The laws of paging are ' +
      'functions over a `fetchPage` (`paging-laws.ts`), for any API that gives pages.',
    '',
    `A run of all of them on the reference server takes ${report.requests} requests (seed ${report.seed}, ${DEFAULTS.runs} runs).`,
    '',
    '| law | reported under | cases |',
    '|---|---|---|',
    ...LAWS.map(({ law, ids }) => `| ${law} | ${ids.join(', ')} | ${report.evidence.laws[law] ?? 0} |`),
    '',
    '## What they find',
    '',
    `Each law by itself against mistakes put into the reference server: in how many of ${seeds} runs with a seed of ` +
      'their own it finds them, with how many requests to the first counterexample and its confirmation (mean), ' +
      'and which requirements fail by the checks alone, without any law. ' +
      'This file is written by `npx tsx certify/proof/law-table.ts --write`.',
    '',
    ...lines,
  ].join('\n');
  const file = fileURLToPath(new URL('../../properties/README.md', import.meta.url));
  await writeFile(file, await format(`${text}\n`, { parser: 'markdown' }));
}
