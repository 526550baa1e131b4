/**
 * Every law against the mistakes that it must find: `npx tsx properties/table.ts [--seeds 20]` prints how often
 * it does within the default number of runs. Exit status 1 where that is less than 19 times in 20.
 */
import { parseArgs } from 'node:util';
import { certify } from '../certify/certify.ts';
import { DEFAULTS } from '../fixtures/judge/kit.ts';
import { openDatabase } from '../reference-server/database.ts';
import { defaultProvisioning, loadProvisioning } from '../reference-server/provisioning.ts';
import { startServer } from '../reference-server/start.ts';
import { PROBES } from '../specs/probes.ts';
import { LAW_FAULTS } from './faults.ts';
import { lawNamed } from './laws.ts';
import { counterexampleOf, knownOf, targetOf } from './testing.ts';

const ENOUGH = 19 / 20;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    /** Only the faults whose name, or whose law's, holds the text. */
    only: { type: 'string', default: '' },
    /** Says also whether the probes find the fault: slow. */
    probes: { type: 'boolean', default: false },
  },
});
const seeds = Number(values.seeds);

await using database = await openDatabase('embedded');
await using provisioned = await loadProvisioning(database, defaultProvisioning());
await using clean = await startServer(database, provisioned);
const known = await knownOf(clean);

const chosen = LAW_FAULTS.filter(({ law, name }) => law.includes(values.only) || name.includes(values.only));
let missed = 0;
console.log(`| law | fault | caught | requests |${values.probes ? ' by probes |' : ''}`);
console.log(`|---|---|---|---|${values.probes ? '---|' : ''}`);
for (const { law, name, server: options, mode } of chosen) {
  await using server = await startServer(database, provisioned, options);
  const target = await targetOf(server, mode, known);
  const probe = lawNamed(law).shrunkBy(0);
  let caught = 0;
  let requests = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const report = await certify(target, { probes: [probe], seed, runs: DEFAULTS.runs });
    if (counterexampleOf(report, law)) caught += 1;
    requests += report.requests;
  }
  if (caught < ENOUGH * seeds) missed += 1;
  const row = [law, name, `${caught} of ${seeds}`, String(Math.round(requests / seeds))];
  if (values.probes) {
    const report = await certify(target, { probes: PROBES, seed: 1 });
    const failed = report.requirements.filter(({ status }) => status === 'fail').map(({ id }) => id);
    row.push(failed.join(', ') || 'no');
  }
  console.log(`| ${row.join(' | ')} |`);
}
process.exitCode = missed > 0 ? 1 : 0;
