/** Certifies every variant with and without a dataset; exits with 1 if one is not conformant. */
import { openDatabase } from '../../reference-server/store/database.ts';
import { defaultProvisioning, loadProvisioning } from '../../reference-server/run/provisioning.ts';
import { VARIANTS } from '../../reference-server/variants/all.ts';
import { certifyVariant, obstaclesOf } from './variants.ts';

const chosen = process.argv.slice(2);

await using database = await openDatabase('embedded');
await using provisioned = await loadProvisioning(database, defaultProvisioning({ count: 600 }));
for (const variant of VARIANTS) {
  if (chosen.length > 0 && !chosen.some((word) => variant.name.includes(word))) continue;
  for (const mode of ['full', 'bare'] as const) {
    const report = await certifyVariant(database, provisioned, variant, mode);
    const mismatches = obstaclesOf(report);
    const warned = report.requirements.filter(({ status }) => status === 'warn').map(({ id }) => id);
    const result = mismatches.length === 0 ? 'conformant' : `\n    ${mismatches.join('\n    ')}`;
    console.log(
      `${variant.name} (${mode}): ${result}${warned.length > 0 ? ` (warned: ${warned.join(', ')})` : ''}`,
    );
    if (mismatches.length > 0) process.exitCode = 1;
  }
}
