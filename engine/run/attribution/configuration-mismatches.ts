/**
 * Configuration mismatches that are certain: they would make right answers look wrong. The run continues without
 * the member, is incomplete, and names it. If the target may be wrong instead, nothing is corrected: the failure
 * names the member too.
 */
import type { Exchange } from '../../client/exchange.ts';
import { member } from '../../client/json.ts';
import { SOME_WINDOW } from '../../client/page.ts';
import { isUuid } from '../../data/dataset.ts';
import { sameBase } from '../../checks/token.ts';
import { unlessUntested } from '../../errors.ts';
import type { RequirementId } from '../../requirements.ts';
import type { ClientName, Target } from '../../target/target.ts';
import type { RunContext } from '../state/context.ts';

/** Corrects configuration mismatches that a token of primary shows; without an answer the target file stays unchanged. */
export async function correctTargetFile(run: RunContext): Promise<void> {
  await unlessUntested(correctIssuer(run));
  await correctTenant(run, 'primary');
}

/** Corrects `tenantId` of a client, once per run. */
export const correctTenant = (run: RunContext, name: ClientName): Promise<void> =>
  run.once(`tenant of ${name}`, () => unlessUntested(compareTenant(run, name)));

/** Drops an `issuer` that no token has, if tokens have the value of section 2.2. */
async function correctIssuer(run: RunContext): Promise<void> {
  const { issuer, authUrl } = run.target;
  const iss = member((await run.client.token()).claims, 'iss');
  if (issuer === undefined || typeof iss !== 'string') return;
  if (sameBase(iss, issuer) || !sameBase(iss, authUrl)) return;
  correct(
    run,
    ['2.2-iss'],
    `issuer is ${issuer}, but tokens name authUrl, ${iss}, as section 2.2 requires: correct issuer, or remove it`,
    { issuer: undefined },
  );
}

const MINTING: readonly ClientName[] = ['primary', 'secondTenant', 'notOnboarded', 'scratch'];

const configuredTenant = ({ target }: RunContext, name: ClientName): string | undefined =>
  target.clients[name]?.tenantId?.toLowerCase();

const claimedTenant = async ({ client }: RunContext, name: ClientName): Promise<string | undefined> =>
  (await client.token(name)).tenantId?.toLowerCase();

function hasDatasetOf({ target }: RunContext, name: ClientName, tenantId: string): boolean {
  const { dataset, secondDataset } = target;
  const held = { primary: dataset, secondTenant: secondDataset }[name as string] ?? [];
  return held.some((one) => one.tenantId.toLowerCase() === tenantId);
}

/**
 * Drops a `tenantId` that differs from the token's, if the token may read its own tenant and not that one. If
 * something else confirms the member (a dataset, or another client of the token's tenant), the token may be wrong.
 */
async function compareTenant(run: RunContext, name: ClientName): Promise<void> {
  const { clients } = run.target;
  const said = configuredTenant(run, name);
  if (said === undefined) return;
  const claimed = await claimedTenant(run, name);
  if (claimed === undefined || !isUuid(claimed)) return;
  const ask = (tenantId: string): Promise<Exchange> =>
    run.client.send(run.request(tenantId, SOME_WINDOW, name), { unjudged: true });
  const serves = async (tenantId: string): Promise<boolean> =>
    (await ask(tenantId)).status === (name === 'notOnboarded' ? 404 : 200);
  if (claimed === said) {
    const [ours, theirs] = [clients[name]!.tenantId!, (await run.client.token(name)).tenantId!];
    // Some servers compare the path with the claim as text.
    if (ours !== theirs && !(await serves(ours)) && (await serves(theirs)))
      Object.assign(run.target, withTenant(run.target, name, theirs));
    return;
  }
  const holder = MINTING.find((client) => configuredTenant(run, client) === claimed);
  const datasetsShow = (own: string, ofHolder: string): boolean =>
    hasDatasetOf(run, name, own) || (holder !== undefined && hasDatasetOf(run, holder, ofHolder));
  if (datasetsShow(said, claimed)) return;
  if (holder) {
    if ((await claimedTenant(run, holder)) !== said) return;
    const unsaid = [name, holder].map((client) => [client, { ...clients[client]!, tenantId: undefined }]);
    const reading = datasetsShow(claimed, said)
      ? 'the target file has exchanged the two, as its dataset shows'
      : 'either the target file or the target has exchanged the two; supply a dataset to decide';
    correct(
      run,
      ['2.2-tenant_id'],
      `the tokens of clients.${name} are for tenant ${claimed}, which is clients.${holder}.tenantId, and those of clients.${holder} are for tenant ${said}, which is clients.${name}.tenantId: ${reading}`,
      { clients: { ...clients, ...(Object.fromEntries(unsaid) as Partial<Target['clients']>) } },
    );
    return;
  }
  // If primary's tokens are for another tenant too, the issuer is wrong.
  const { tenantId: ofPrimary } = clients.primary;
  const isOdd = async (): Promise<boolean> =>
    ofPrimary !== undefined && (await run.client.token()).tenantId?.toLowerCase() !== ofPrimary.toLowerCase();
  if (name !== 'primary' && (await isOdd())) return;
  if (!(await serves(claimed)) || (await ask(said)).status !== 403) return;
  correct(
    run,
    ['2.2-tenant_id'],
    `clients.${name}.tenantId is ${said}, but its tokens are for tenant ${claimed} and are accepted there: correct tenantId, or remove it (if it is right, the target mints another tenant’s tokens)`,
    withTenant(run.target, name, undefined),
  );
}

const withTenant = (
  { clients }: Target,
  name: ClientName,
  tenantId: string | undefined,
): Partial<Target> => ({
  clients: { ...clients, [name]: { ...clients[name]!, tenantId } },
});

/** Continues without a wrong member of the target file: the run is incomplete and reports no failure for it. */
function correct(
  { target, ledger }: RunContext,
  ids: readonly RequirementId[],
  reason: string,
  change: Partial<Target>,
): void {
  Object.assign(target, change);
  ledger.supplyUnusable(ids, reason);
  ledger.reconsider(ids);
}

/** Clients with a finding that their tokens are for another tenant than the target file says. */
export const clientsInDoubt = ({ ledger, target }: RunContext): ClientName[] =>
  (Object.keys(target.clients) as ClientName[]).filter((name) =>
    ledger.unconfirmed.some(
      ({ id, exchange }) =>
        id === '2.2-tenant_id' &&
        exchange?.request.form?.some(([, value]) => value === target.clients[name]?.clientId),
    ),
  );
