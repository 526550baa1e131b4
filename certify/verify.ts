#!/usr/bin/env node
/** `npm run verify -- certificate.jws --key public.jwk [--report report.json]`: exits with 0 (verified), 1 (not) or 2 (usage). */
import { command, parseCommand, runCommand } from '../engine/command-line.ts';
import { readText } from '../engine/files.ts';
import { calledFrom } from '../engine/package.ts';
import { visible } from './render/markup.ts';
import { classesText } from './render/service-results.ts';
import { NotVerified, readKey, verify } from './report/certificate.ts';

const at = calledFrom('verify');

const parser = command(
  'verify',
  'Verifies a signed certificate: its signature, and that it belongs to the report.',
)
  .argument('<certificate>', 'certificate.jws')
  .requiredOption('--key <file>', 'public key of the certifier (a JWK)')
  .option('--report <file>', 'the report.json that the certificate belongs to')
  .addHelpText('after', '\nExit status: 0 verified (whatever the verdict), 1 not verified, 2 wrong usage');

interface Flags {
  readonly key: string;
  readonly report?: string;
}

await runCommand('verify', async () => {
  const flags = parseCommand<Flags>(parser, process.argv.slice(2));
  if (!flags) return 0;
  return await verifyFiles(parser.args[0]!, flags).catch((error: unknown) => {
    if (!(error instanceof NotVerified)) throw error;
    console.error(`verify: NOT VERIFIED: ${error.message}`);
    return 1;
  });
});

async function verifyFiles(file: string, { key, report }: Flags): Promise<number> {
  const read = (path: string, label: string): Promise<string> => readText(at(path), label, path);
  const jwk = readKey(await read(key, '--key'), key, 'public');
  const reportJson = report === undefined ? undefined : Buffer.from(await read(report, '--report'));
  const statement = await verify(await read(file, 'the certificate'), jwk, reportJson);
  const { screenings } = statement.predicate;
  const { target, verdict, kit, startedAt, selection } = screenings;
  const lines = [
    `verified: ${verdict}${selection ? ` (a selection: ${selection.join(', ')})` : ''}`,
    `target     ${target.name}, ${target.baseUrl}`,
    `kit        ${kit.name} ${kit.version}, ${startedAt}`,
    `classes    ${classesText(screenings)}`,
    report === undefined
      ? `report     not compared; give --report to compare it with sha256 ${statement.subject[0].digest.sha256}`
      : 'report     is the one that was certified',
  ];
  console.log(lines.map(visible).join('\n'));
  return 0;
}
