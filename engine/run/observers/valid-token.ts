/** A token is accepted until its `exp` (5-valid-token): reports every 401 before that, and its cause. */
import type { Authorization, Exchange } from '../../client/exchange.ts';
import { member } from '../../client/json.ts';
import { endsEmpty, pageOf, parseQuery, SOME_WINDOW } from '../../client/page.ts';
import { dateMs } from '../../client/target-clock.ts';
import { secondsOf, type Token } from '../../client/token.ts';
import { compareInstants } from '../../data/instant.ts';
import { differs, type Mismatch, type MismatchWithEvidence } from '../../checks/mismatch.ts';
import { FORBIDDEN, NOT_FOUND, refused, sayRefusal } from '../../checks/errors.ts';
import type { ClientName } from '../../target/target.ts';
import { OLDEST_TOKEN } from '../state/ledger.ts';
import type { RunContext } from '../state/context.ts';

/** Tolerated clock difference if the target sends no `Date`. */
const SKEW_SECONDS = 300;
const ROUNDING_SECONDS = 5;

/** The shared cause of all such findings. */
export const LATER_MINT = 'a later mint ends earlier tokens';

export const claimSeconds = (token: Token | undefined, name: 'iat' | 'exp'): number =>
  secondsOf(member(token?.claims, name));

type Clocked = Pick<RunContext, 'client'>;

/** Seconds from an answer to the token's `exp`, by the target's clock if its `Date` is right; NaN if unknown. */
export function secondsLeft({ client: { clock } }: Clocked, token: Token, exchange: Exchange): number {
  const isDated = dateMs(exchange) !== undefined && clock.wrongDateMs === undefined;
  const tolerance = isDated ? ROUNDING_SECONDS : SKEW_SECONDS;
  return claimSeconds(token, 'exp') - clock.atMs(exchange) / 1000 - tolerance;
}

/** Notes the age of an accepted token; the report shows the greatest age. */
function noteAge({ client, ledger }: RunContext, token: Token, exchange: Exchange): void {
  const ageSeconds = client.clock.atMs(exchange) / 1000 - claimSeconds(token, 'iat');
  if (ageSeconds >= 0) ledger.raiseTo(OLDEST_TOKEN, Math.round(ageSeconds));
}

/** A GET of the client's own path with valid parameters (section 4.2). */
function isValid({ request }: Exchange, token: Token): boolean {
  const asked = parseQuery(request.url);
  return (
    request.channel === 'rest' &&
    request.method === 'GET' &&
    !request.offPath &&
    asked !== undefined &&
    compareInstants(asked.from, asked.to) <= 0 &&
    asked.tenantId.toLowerCase() === token.tenantId?.toLowerCase()
  );
}

/** Notes a valid request with one of the client's own tokens, and reports its rejection. */
export function observeToken(run: RunContext, exchange: Exchange): void {
  const { authorization } = exchange.request;
  const token = run.client.tokenOf(exchange);
  if (!token || authorization.kind !== 'client' || !isValid(exchange, token)) return;
  run.ledger.check('5-valid-token');
  if (exchange.status === 200) noteAge(run, token, exchange);
  if (exchange.status !== 401 || !(secondsLeft(run, token, exchange) > 0)) return;
  const superseded = run.client.newest.get(clientIdOf(run, authorization.client)) !== token.text;
  run.ledger.add({
    id: '5-valid-token',
    cause: superseded ? LATER_MINT : 'observed',
    mismatch: refusedToken(run, exchange, token, superseded ? ', after a later one had been minted' : ''),
    exchange,
    again: () => refusalOf(run, token, 'the same one', '', exchange),
  });
}

const clientIdOf = ({ target }: RunContext, name: ClientName): string => target.clients[name]?.clientId ?? '';

export const refusedToken = (run: Clocked, exchange: Exchange, token: Token, when: string): Mismatch =>
  differs(
    `200: the token lasts ${Math.round(secondsLeft(run, token, exchange))} s more`,
    `${sayRefusal(exchange)}${when}`,
  );

/** `of`: the client whose current token replaces it once it has expired. */
export const tokenHeader = (token: Token, label: string, of?: ClientName): Authorization => ({
  kind: 'header',
  value: `Bearer ${token.text}`,
  label: `Bearer $TOKEN (${label})`,
  shell: 'Bearer $TOKEN',
  ...(of ? { of } : {}),
});

/** The service names its code in a 403 or 404; a guard in front of it does not. */
const isRejected = (run: RunContext, exchange: Exchange): boolean =>
  exchange.status === 401 || refused(run, FORBIDDEN, NOT_FOUND)(exchange) === undefined;

/**
 * Sends a valid request with an unexpired token; the mismatch if it is refused. `label` names the token, `when` its
 * history. With `seen`, an earlier exchange, its request, which must not lose all items; otherwise one of primary.
 */
export async function refusalOf(
  run: RunContext,
  token: Token,
  label: string,
  when = '',
  seen?: Exchange,
): Promise<MismatchWithEvidence | undefined> {
  const valid = seen?.request ?? run.request(await run.tenantOf('primary'), SOME_WINDOW);
  const exchange = await run.client.send({ ...valid, authorization: tokenHeader(token, label) });
  if (!(secondsLeft(run, token, exchange) > 0)) return undefined;
  if (exchange.status === 200) noteAge(run, token, exchange);
  if (isRejected(run, exchange)) return { ...refusedToken(run, exchange, token, when), exchange };
  const was = (seen && pageOf(seen).items?.length) ?? 0;
  return was > 0 && endsEmpty(exchange)
    ? { ...differs(`${was} items, as with another token`, `no items${when}`), exchange }
    : undefined;
}
