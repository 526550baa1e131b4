/** A token for every client that can have one, made once: what sections 2.1, 2.2, 4.1 and 5 look at. */
import type { ClientName } from '../../target/target.ts';
import type { Kit } from '../kit.ts';

/** The observers look at each. */
export const mintAll = (kit: Kit): Promise<void> => kit.once('tokens of every client', () => mint(kit));

async function mint(kit: Kit): Promise<void> {
  const names: ClientName[] = ['primary', 'secondTenant', 'notOnboarded', 'primary'];
  for (const name of names.filter((name) => kit.target.clients[name])) await kit.client.mint(name);
}
