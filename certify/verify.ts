#!/usr/bin/env node
/** `npm run verify -- certificate.jws --key public.jwk [--report report.json]`: exits with 0 (verified), 1 (not) or 2 (usage). */
import { readFile } from 'node:fs/promises';
import { UsageError } from '../engine/errors.ts';
import { calledFrom } from '../engine/package.ts';
import { command, parseOwnFlags } from '../engine/command-line.ts';
import { NotVerified, readKey, verify } from './report/certificate.ts';
import { visible } from './render/markup.ts';

const at = calledFrom('verify');

const parser = command(
  'verify',
  'Verifies a signed certificate: its signature, and that it belongs to the report.',
)
  .argument('<certificate>', 'certificate.jws')
  .requiredOption('--key <file>', 'public key of the certifier (a JWK)')
  .option('--report <file>', 'the report.json that the certificate belongs to')
  .addHelpText('after', '\nExit status: 0 verified (whatever the verdict), 1 not verified, 2 wrong usage');
const { key, report } = parseOwnFlags<{ key: string; report?: string }>(parser);

const read = (path: string): Promise<Buffer> =>
  readFile(at(path)).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`can't read ${path} (${error.code ?? error.message})`);
  });

try {
  const jwk = readKey(String(await read(key)), key, 'public');
  const certificate = String(await read(parser.args[0]!));
  const statement = await verify(certificate, jwk, report === undefined ? undefined : await read(report));
  const {
    target,
    verdict,
    classes,
    kit,
    startedAt,
    selection,
    declared = [],
  } = statement.predicate.screenings;
  const of = (state: string): string =>
    Object.entries(classes)
      .filter(([, is]) => is === state)
      .map(([name]) => name)
      .join(', ') || 'none';
  const lines = [
    `verified: ${verdict}${selection ? ` (a selection: ${selection.join(', ')})` : ''}`,
    `target     ${target.name}, ${target.baseUrl}`,
    `kit        ${kit.name} ${kit.version}, ${startedAt}`,
    `classes    exercised: ${of('exercised')}; partly: ${of('partly')}; untested: ${of('untested')}`,
    ...declared.map(({ id, reason }) => `declared   ${id} is not applicable: ${reason}`),
    report === undefined
      ? `report     not compared; give --report to compare it with sha256 ${statement.subject[0].digest.sha256}`
      : 'report     is the one that was certified',
  ];
  console.log(lines.map(visible).join('\n'));
} catch (error) {
  if (!(error instanceof NotVerified) && !(error instanceof UsageError)) throw error;
  console.error(`verify: ${error instanceof NotVerified ? 'NOT VERIFIED: ' : ''}${error.message}`);
  process.exitCode = error instanceof NotVerified ? 1 : 2;
}
