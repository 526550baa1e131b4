/** The tenant of each client, and the known screenings of that tenant. */
import { Oracle } from '../data/oracle.ts';
import { Untested } from '../errors.ts';
import type { ClientName } from '../target/target.ts';
import { correctTenant } from './attribution/configuration-mismatches.ts';
import { oracleOfDataset, whyUnusable } from './observers/served-dataset.ts';
import type { RunContext } from './state/context.ts';

/** From the target file, else from the token. Throws Untested if the client or its tenant is missing. */
export async function tenantOf(run: RunContext, client: ClientName): Promise<string> {
  const credentials = run.target.clients[client];
  if (!credentials) throw new Untested(`supply clients.${client} in the target file`);
  // Primary's tenant was corrected at the start of the run.
  if (client !== 'primary') await correctTenant(run, client);
  const tenantId = run.target.clients[client]?.tenantId ?? (await run.client.token(client)).tenantId;
  if (!tenantId)
    throw new Untested(
      `the token of clients.${client} names no tenant_id; supply clients.${client}.tenantId`,
    );
  return tenantId;
}

/** The known screenings of a client: its dataset, or what answers showed. */
export async function oracleOf(run: RunContext, client: ClientName): Promise<Oracle> {
  const { target, knowledge } = run;
  const tenantId = (await run.tenantOf(client)).toLowerCase();
  const existing = knowledge.oracleOf(tenantId);
  if (existing) return existing;
  const supplied = { primary: target.dataset, secondTenant: target.secondDataset }[client as string];
  const unusable = supplied && whyUnusable(supplied, client, tenantId);
  // The other requirements are tested without a dataset.
  if (unusable !== undefined) run.ledger.supplyUnusable(['4.2-window'], unusable);
  const dataset = unusable === undefined ? supplied : undefined;
  const window = client === 'primary' ? target.window : undefined;
  if (dataset) knowledge.record(client, tenantId, dataset, window);
  if (client === 'primary') knowledge.recordUnfinished(tenantId, target.unfinished ?? []);
  const known = dataset
    ? await run.once(`dataset of ${client}`, () => oracleOfDataset(run, client, dataset))
    : new Oracle(false);
  if (dataset && window) known.limitTo(window);
  // A concurrent caller may have set it meanwhile.
  if (!knowledge.oracleOf(tenantId)) knowledge.set(tenantId, known);
  return knowledge.oracleOf(tenantId)!;
}
