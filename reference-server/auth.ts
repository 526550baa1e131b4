/** Client authentication, with secrets kept as salted scrypt hashes; and the tokens that clients get. */
import {
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';
import { TooManyGuesses } from './parts.ts';
import type { Client, ClientRegistry, TokenClaims, TokenIssuer } from './parts.ts';
import { jwtVerify, SignJWT } from 'jose';

interface HashedSecret {
  readonly salt: Buffer;
  readonly hash: Buffer;
  readonly cost: number;
}

const HASH_OCTETS = 32;
const HASH_COST = 16_384;
const MAX_WAITING_PER_CLIENT = 8;
const UNKNOWN_CLIENTS = '';
const derive = promisify(scrypt) as (
  secret: string,
  salt: Buffer,
  octets: number,
  options: { cost: number },
) => Promise<Buffer>;

export async function hashSecret(secret: string, cost = HASH_COST): Promise<HashedSecret> {
  const salt = randomBytes(16);
  return { salt, hash: await derive(secret, salt, HASH_OCTETS, { cost }), cost };
}

/**
 * A slow hash makes guessing expensive, but would slow every mint too: once a secret has been correct, later requests
 * are recognised by a digest with a key of this process. A wrong secret is hashed every time. Hashes run one at a
 * time through a fair queue with bounded lanes, so that a flood of guesses delays only the client that is guessed at.
 * All unknown clients share a lane.
 */
export async function createClientRegistry(
  clients: readonly (Client & { readonly secret: HashedSecret })[],
): Promise<ClientRegistry> {
  const byId = new Map(clients.map((client) => [client.clientId, client]));
  const digestKey = randomBytes(32);
  const digest = (id: string, secret: string): Buffer =>
    createHmac('sha256', digestKey)
      .update(JSON.stringify([id, secret]))
      .digest();
  const recognised = new Map<string, Buffer>();
  // Unknown clients are compared with this hash, so that the answer takes as long as for known ones.
  const decoy = await hashSecret(randomBytes(16).toString('hex'), clients[0]?.secret.cost);

  const inTurn = fairQueue(MAX_WAITING_PER_CLIENT);
  const matches = (lane: string, secret: string, { salt, hash, cost }: HashedSecret): Promise<boolean> => {
    const result = inTurn(lane, async () =>
      timingSafeEqual(await derive(secret, salt, HASH_OCTETS, { cost }), hash),
    );
    if (!result) throw new TooManyGuesses('too many secrets are being checked');
    return result;
  };

  return {
    async authenticate(clientId, clientSecret) {
      const client = byId.get(clientId);
      const shown = digest(clientId, clientSecret);
      const known = recognised.get(clientId);
      if (client && known && timingSafeEqual(known, shown)) return client;
      const right = await matches(client?.clientId ?? UNKNOWN_CLIENTS, clientSecret, client?.secret ?? decoy);
      if (!right || !client) return undefined;
      recognised.set(clientId, shown);
      return client;
    },
  };
}

/** Runs tasks one at a time; lanes take turns, and one with `perLane` waiting tasks accepts no more (undefined). */
function fairQueue(perLane: number) {
  const lanes = new Map<string, { waiting: number; last: Promise<unknown> }>();
  let inLine: Promise<unknown> = Promise.resolve();
  return <Result>(name: string, work: () => Promise<Result>): Promise<Result> | undefined => {
    const lane = lanes.get(name) ?? { waiting: 0, last: Promise.resolve() };
    if (lane.waiting >= perLane) return undefined;
    lanes.set(name, lane);
    lane.waiting += 1;
    const result = lane.last.then(() => {
      const run = inLine.then(work);
      inLine = run.catch(() => undefined);
      return run;
    });
    lane.last = result.catch(() => undefined).then(() => (lane.waiting -= 1));
    return result;
  };
}

// -- access tokens: signed JWTs (section 2.2) ---------------------------------------------------------

interface TokenOptions {
  readonly issuer: string;
  readonly audience: string;
  /** A private key in PEM: RSA, EC P-256 or Ed25519. Default: a new P-256 key. */
  readonly signingKeyPem?: string;
}

/** Size of the cache of verified tokens, which saves verifying the signature again for every page. */
const MAX_CACHED_TOKENS = 1_000;

/** Throws an Error for any other kind of key. */
export function createTokenIssuer({ issuer, audience, signingKeyPem }: TokenOptions): TokenIssuer {
  const privateKey = signingKeyPem
    ? createPrivateKey(signingKeyPem)
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const publicKey = createPublicKey(privateKey);
  const alg = algorithmOf(privateKey);
  const verified = new Map<string, TokenClaims>();

  return {
    mint: (claims) => new SignJWT({ ...claims }).setProtectedHeader({ alg, typ: 'JWT' }).sign(privateKey),

    async verify(token, nowSeconds) {
      const known = verified.get(token);
      if (known) return nowSeconds < known.exp ? known : undefined;
      try {
        const { payload } = await jwtVerify(token, publicKey, {
          algorithms: [alg],
          issuer,
          audience,
          currentDate: new Date(nowSeconds * 1000),
          requiredClaims: ['sub', 'iat', 'exp', 'scope', 'tenant_id'],
        });
        const claims = payload as unknown as TokenClaims;
        if (verified.size >= MAX_CACHED_TOKENS) verified.delete(verified.keys().next().value as string);
        verified.set(token, claims);
        return claims;
      } catch {
        return undefined;
      }
    },
  };
}

function algorithmOf(key: KeyObject): 'RS256' | 'ES256' | 'EdDSA' {
  const { asymmetricKeyType, asymmetricKeyDetails } = key;
  const curve = asymmetricKeyDetails?.namedCurve;
  if (asymmetricKeyType === 'rsa') return 'RS256';
  if (asymmetricKeyType === 'ed25519') return 'EdDSA';
  if (asymmetricKeyType === 'ec' && curve === 'prime256v1') return 'ES256';
  const kind = [asymmetricKeyType, curve].filter(Boolean).join(' ');
  throw new Error(`cannot sign tokens with a key of type ${kind}: use RSA, EC P-256 or Ed25519`);
}
