/** A certificate to hand over: an in-toto statement (test-result) about report.json, signed as a compact JWS. */
import { commandLine } from '../../engine/package.ts';
import { createHash } from 'node:crypto';
import {
  calculateJwkThumbprint,
  compactVerify,
  CompactSign,
  decodeProtectedHeader,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import { parseJson } from '../../engine/client/json.ts';
import { UsageError } from '../../engine/errors.ts';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import type { Report } from './report.ts';

const ALGORITHM = 'EdDSA';
const TYPE = 'application/vnd.in-toto+json';
const STATEMENT = 'https://in-toto.io/Statement/v1';
const PREDICATE = 'https://in-toto.io/attestation/test-result/v0.1';

type Statement = ReturnType<typeof statementOf>;

const sha256 = (octets: string | Uint8Array): string => createHash('sha256').update(octets).digest('hex');

/** Only a conformant verdict is PASSED. */
const RESULT = { conformant: 'PASSED', 'non-conformant': 'FAILED', incomplete: 'WARNED' } as const;

/** @param reportJson the exact octets of report.json, as written */
export function statementOf(report: Report, reportJson: string | Uint8Array) {
  const ids = (status: string): string[] =>
    report.requirements.filter((result) => result.status === status).map(({ id }) => id);
  const catalogue = JSON.stringify(REQUIREMENTS.map(({ id, level, title }) => [id, level, title]));
  const { verdict, target, kit, classes, coverage, seed, startedAt, durationMs, selection, declared } =
    report;
  return {
    _type: STATEMENT,
    subject: [{ name: 'report.json', digest: { sha256: sha256(reportJson) } }] as const,
    predicateType: PREDICATE,
    predicate: {
      result: RESULT[verdict],
      configuration: [{ name: 'requirement catalogue', digest: { sha256: sha256(catalogue) } }],
      passedTests: ids('pass'),
      warnedTests: ids('warn'),
      failedTests: ids('fail'),
      // The predicate defines no members for these.
      screenings: {
        ...{ verdict, target, kit, classes, coverage, seed, startedAt, durationMs },
        untested: [...ids('untested'), ...ids('error')],
        ...{ selection, declared },
      },
    },
  };
}

/** A new key pair for EdDSA (Ed25519), with the thumbprint as `kid`. */
export async function makeKeys(): Promise<{ readonly private: JWK; readonly public: JWK }> {
  const { privateKey, publicKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
  const common = {
    kid: await calculateJwkThumbprint(await exportJWK(publicKey)),
    alg: ALGORITHM,
    use: 'sig',
  };
  return {
    private: { ...(await exportJWK(privateKey)), ...common },
    public: { ...(await exportJWK(publicKey)), ...common },
  };
}

/** Parses a key. Throws a UsageError. */
export function readKey(text: string, label: string, kind: 'private' | 'public'): JWK {
  const key = parseJson(text) as JWK | undefined;
  if (typeof key?.kty !== 'string' || key.kty === 'oct')
    throw new UsageError(`${label}: not a JWK of a key pair, as ${commandLine('keys')} makes them`);
  if (kind === 'private' && key.d === undefined) throw new UsageError(`${label}: a public key cannot sign`);
  if (kind === 'public' && key.d !== undefined)
    throw new UsageError(`${label} is a private key, which only the signer may hold; give the public key`);
  return key;
}

export async function sign(statement: Statement, key: JWK): Promise<string> {
  const alg = key.alg ?? ALGORITHM;
  const header = { alg, typ: TYPE, ...(key.kid ? { kid: key.kid } : {}) };
  return new CompactSign(new TextEncoder().encode(JSON.stringify(statement)))
    .setProtectedHeader(header)
    .sign(await importJWK(key, alg));
}

export class NotVerified extends Error {
  override readonly name = 'NotVerified';
  readonly code = 'ERR_NOT_VERIFIED';
}

/** Returns the statement after verifying signature, form and the digest of the report. Throws NotVerified. */
export async function verify(certificate: string, key: JWK, reportJson?: Uint8Array): Promise<Statement> {
  const { d: _, ...publicKey } = key;
  const alg = key.alg ?? ALGORITHM;
  let statement: Statement | undefined;
  try {
    const header = decodeProtectedHeader(certificate.trim());
    if (header.alg === 'none') throw new NotVerified('the certificate is not signed');
    if (header.kid && key.kid && header.kid !== key.kid)
      throw new NotVerified(`the certificate was signed with another key (${header.kid}, not ${key.kid})`);
    const publicOf = await importJWK(publicKey, alg);
    const { payload } = await compactVerify(certificate.trim(), publicOf, { algorithms: [alg] });
    statement = JSON.parse(new TextDecoder().decode(payload)) as Statement | undefined;
  } catch (error) {
    if (error instanceof NotVerified) throw error;
    throw new NotVerified(
      error instanceof errors.JWSSignatureVerificationFailed
        ? 'the signature does not match: the certificate was altered, or signed with another key'
        : `this is not a signed certificate (${(error as Error).message})`,
    );
  }
  if (
    statement?._type !== STATEMENT ||
    statement.predicateType !== PREDICATE ||
    !statement.predicate.screenings
  )
    throw new NotVerified('the signed content is not a certificate of this kit');
  if (reportJson && sha256(reportJson) !== statement.subject[0].digest.sha256)
    throw new NotVerified('the report is not the one that was certified: its digest differs');
  return statement;
}
