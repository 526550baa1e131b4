/** Requests that must be answered 401 (section 5). */
import type { Authorization, Exchange } from '../../client/exchange.ts';
import { member } from '../../client/json.ts';
import { SOME_WINDOW } from '../../client/page.ts';
import { claimsOf, secondsOf } from '../../client/token.ts';
import { UNAUTHENTICATED, refused } from '../../checks/errors.ts';
import type { Judge } from '../../checks/mismatch.ts';
import type { RequirementId } from '../../requirements.ts';
import type { Kit } from '../kit.ts';
import { readable } from './raw-request.ts';
import { expiredTokenOf, expiredTokensOf } from './expired-tokens.ts';

/**
 * A request for primary's own path with another Authorization; it must be answered 401 unauthenticated. Resolves to
 * whether that, and not another error, decides about it.
 */
export async function unauthenticated(
  kit: Kit,
  id: RequirementId,
  authorization: Authorization,
  extraQuery = '',
  /** Errors of the query that may be reported before authentication. */
  ...orElse: readonly (readonly [number, string])[]
): Promise<boolean> {
  const exchange = await askOwnPath(kit, authorization, extraQuery);
  const label = authorization.kind === 'header' ? authorization.label : 'no Authorization header';
  const judge = refused(kit, UNAUTHENTICATED, ...orElse);
  return !kit.check(id, exchange, judge, label) || exchange.status === UNAUTHENTICATED[0];
}

/** The answer to a valid request for primary's own path with this Authorization. */
export async function askOwnPath(kit: Kit, authorization: Authorization, extraQuery = ''): Promise<Exchange> {
  const request = kit.request(await kit.tenantOf(), SOME_WINDOW, authorization);
  return readable(await kit.send({ ...request, url: `${request.url}${extraQuery}` }));
}

/** An Authorization header as given; reports show `label`, commands `shell`. */
export const bearerHeader = (value: string, label: string, shell = label): Authorization => ({
  kind: 'header',
  value,
  label,
  shell,
});

/** A forged token for commands: only the kit can sign it, and the command says so. */
export const forgedBearer = (token: string, label: string): Authorization =>
  bearerHeader(
    `Bearer ${token}`,
    label,
    'Bearer ${FORGED_TOKEN:?the kit signs another one each time: use replay}',
  );

/** An expired token. Throws Untested if there is none that proves anything. */
export const expiredBearer = async (kit: Kit): Promise<Authorization> =>
  bearerOfExpired(await expiredTokenOf(kit), 'the expired token');

const bearerOfExpired = (text: string, label: string, scheme = 'Bearer'): Authorization =>
  bearerHeader(
    `${scheme} ${text}`,
    `${scheme} (${label})`,
    `${scheme} \${EXPIRED_TOKEN:?put the expired token there}`,
  );

/** Every expired token must be answered 401 unauthenticated. Throws like expiredBearer. */
export async function expiredUnauthenticated(kit: Kit): Promise<void> {
  const expired = (await expiredTokensOf(kit)).map((token) => ({ ...token, scheme: 'Bearer' }));
  // Also with the scheme in lower case, for which a gateway may have another rule.
  for (const { text, label, scheme } of [...expired, { ...expired[0]!, scheme: 'bearer' }]) {
    const exchange = await askOwnPath(kit, bearerOfExpired(text, label, scheme));
    const exp = secondsOf(member(claimsOf(text), 'exp'));
    const judge: Judge = (answer) => {
      const mismatch = refused(kit, UNAUTHENTICATED)(answer);
      const seconds = Math.round(kit.client.clock.atMs(answer) / 1000 - exp);
      return mismatch && { ...mismatch, received: `${mismatch.received}, ${seconds} s after its exp` };
    };
    kit.check('5-expired', exchange, judge, label);
  }
}
