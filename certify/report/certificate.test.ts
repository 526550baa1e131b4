/** Verification of a certificate that is handed over. */
import { expect } from '@playwright/test';
import { UnsecuredJWT } from 'jose';
import { makeKeys, readKey, sign, statementOf, verify } from './certificate.ts';
import { conformantReport, sampleReport } from '../render/sample.testing.ts';
import { test } from '../../reference-server/testing.ts';

const octets = (report: object): Uint8Array => new TextEncoder().encode(JSON.stringify(report));

const declared = [{ id: '7.1-invalid_grant', reason: 'no client can be suspended' }];
const report = { ...sampleReport(), declared };
const json = octets(report);

test('a certificate repeats the report and is verified with the public key', async () => {
  const keys = await makeKeys();
  const certificate = await sign(statementOf(report, json), keys.private);
  const { predicate, subject } = await verify(`${certificate}\n`, keys.public, json);
  expect(subject[0].name).toBe('report.json');
  expect(predicate.result).toBe('FAILED');
  expect(predicate.failedTests).toContain('4.2-to-exclusive');
  const { target, kit, verdict, classes, seed, startedAt } = report;
  expect(predicate.screenings).toMatchObject({ target, kit, verdict, classes, seed, startedAt, declared });
  expect(statementOf(conformantReport(), json).predicate.result).toBe('PASSED');
  expect(JSON.stringify(keys.public)).not.toContain('"d"');
});

test('rejects a certificate that was altered, signed with another key or not signed', async () => {
  const [keys, others] = [await makeKeys(), await makeKeys()];
  const certificate = await sign(statementOf(report, json), keys.private);
  const [head, payload, signature] = certificate.split('.') as [string, string, string];
  const better = Buffer.from(payload, 'base64url').toString().replace('non-conformant', 'conformant');
  const altered = [head, Buffer.from(better).toString('base64url'), signature].join('.');
  const unsigned = new UnsecuredJWT({ ...statementOf(report, json) }).encode();
  const { kid: _, ...nameless } = others.public;

  await expect(
    verify(certificate, keys.public, octets({ ...report, verdict: 'conformant' })),
  ).rejects.toThrow('its digest differs');
  await expect(verify(certificate, others.public)).rejects.toThrow('signed with another key');
  await expect(verify(certificate, nameless)).rejects.toThrow('the signature does not match');
  await expect(verify(altered, keys.public)).rejects.toThrow('the signature does not match');
  await expect(verify(unsigned, keys.public)).rejects.toThrow('not signed');
  await expect(verify('rubbish', keys.public)).rejects.toThrow('not a signed certificate');
  expect(() => readKey(JSON.stringify(keys.public), 'k', 'private')).toThrow('a public key cannot sign');
  expect(() => readKey(JSON.stringify(keys.private), 'k', 'public')).toThrow('a private key');
  for (const other of ['{}', 'null', 'rubbish', '{"kty":"oct","k":"AA"}'])
    expect(() => readKey(other, 'k', 'public')).toThrow('k: not a JWK of a key pair, as npm run keys');
});
