/** Who may ask for tokens. Secrets are kept as salted scrypt hashes. */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { Client, ClientRegistry } from './parts.ts';

export interface HashedSecret {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

export interface RegisteredClient extends Client {
  readonly secret: HashedSecret;
}

const HASH_OCTETS = 32;
const derive = promisify(scrypt) as (secret: string, salt: Buffer, octets: number) => Promise<Buffer>;

export async function hashSecret(secret: string, salt = randomBytes(16)): Promise<HashedSecret> {
  return { salt, hash: await derive(secret, salt, HASH_OCTETS) };
}

/**
 * A slow hash makes guessing dear, and would make every mint dear too. So a secret that was right once is
 * recognised by a keyed digest afterwards (the key lives as long as this process); a wrong one pays every time,
 * one after the other, which keeps guessing from slowing the rest of the service.
 */
export async function createClientRegistry(clients: readonly RegisteredClient[]): Promise<ClientRegistry> {
  const byId = new Map(clients.map((client) => [client.clientId, client]));
  const digestKey = randomBytes(32);
  const digest = (id: string, secret: string): Buffer =>
    createHmac('sha256', digestKey)
      .update(JSON.stringify([id, secret]))
      .digest();
  const recognised = new Map<string, Buffer>();
  // What an unknown client is compared with, for the same time.
  const nobody = await hashSecret(randomBytes(16).toString('hex'));

  let turn: Promise<unknown> = Promise.resolve();
  const matches = (secret: string, { salt, hash }: HashedSecret): Promise<boolean> => {
    const result = turn.then(async () => timingSafeEqual(await derive(secret, salt, HASH_OCTETS), hash));
    turn = result.catch(() => undefined);
    return result;
  };

  return {
    async authenticate(clientId, clientSecret) {
      const client = byId.get(clientId);
      const shown = digest(clientId, clientSecret);
      const known = recognised.get(clientId);
      if (client && known && timingSafeEqual(known, shown)) return client;
      if (!(await matches(clientSecret, client?.secret ?? nobody)) || !client) return undefined;
      recognised.set(clientId, shown);
      return client;
    },
  };
}
