/** Mints a token for every client that can have one, once per run, for sections 2.1, 2.2, 4.1 and 5. */
import type { ClientName } from '../../target/target.ts';
import type { Kit } from '../kit.ts';

/** Observers judge each token. */
export const mintAll = (kit: Kit): Promise<void> => kit.once('tokens of every client', () => mint(kit));

async function mint(kit: Kit): Promise<void> {
  const names: ClientName[] = ['primary', 'secondTenant', 'notOnboarded', 'primary'];
  for (const name of names.filter((name) => kit.target.clients[name])) await kit.client.mint(name);
}
