/** Sections 2.1, 2.2 and 4.1: the token response, its claims, and the request that earns it. */
import { Untested } from '../fixtures/client/client.ts';
import type { RequestOut } from '../fixtures/client/exchange.ts';
import { member } from '../fixtures/client/json.ts';
import { differs, type Judge } from '../fixtures/checks/mismatch.ts';
import type { Kit } from '../fixtures/run/kit.ts';
import { sayRefusal } from '../fixtures/checks/errors.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { formEncode } from '../fixtures/client/transport.ts';
import type { ClientName } from '../fixtures/target/target.ts';

const mintsNone: Judge = (exchange) =>
  exchange.status >= 400 || member(exchange.json, 'access_token') === undefined
    ? undefined
    : differs('no token', `${exchange.status} with access_token`);

/** A client error, whatever its body. */
const refused4xx: Judge = (exchange) =>
  mintsNone(exchange) ??
  (exchange.status >= 400 && exchange.status < 500 ? undefined : differs('a 4xx', sayRefusal(exchange)));

/** Tokens for every client that can have one; the observers look at each. */
async function mintAll(kit: Kit): Promise<void> {
  const names: ClientName[] = ['primary', 'secondTenant', 'notOnboarded', 'primary'];
  for (const name of names.filter((name) => kit.target.clients[name])) {
    const exchange = await kit.client.mint(name);
    if (name !== 'primary') continue;
    kit.check('4.1-success', exchange, (answer) =>
      answer.status === 200 ? undefined : differs('200', sayRefusal(answer)),
    );
  }
}

function withQuery(kit: Kit, fields: Partial<RequestOut>): RequestOut {
  const request = kit.client.tokenRequest([]);
  const url = `${request.url}?${formEncode(kit.client.validForm('primary'))}`;
  const { form: _, ...rest } = request;
  return { ...rest, url, offPath: true, ...fields };
}

export const probes: readonly Probe[] = [
  {
    ids: [
      '2.1-access_token',
      '2.1-token_type',
      '2.1-expires_in',
      '2.1-scope',
      '2.2-iss',
      '2.2-aud',
      '2.2-sub',
      '2.2-sub-client',
      '2.2-iat',
      '2.2-exp',
      '2.2-scope',
      '2.2-tenant_id',
      '4.1-success',
      '4.1-content-type',
      '4.1-no-store',
      '5-no-refresh-token',
    ],
    name: 'tokens of every client',
    precondition: 'token',
    run: mintAll,
  },
  {
    ids: ['2.1-expires_in-3600'],
    name: 'a new token',
    precondition: 'token',
    run: async (kit) => {
      await kit.client.mint();
      if (!kit.ledger.checks.has('2.1-expires_in-3600')) {
        throw new Untested(
          'only tokens that had been handed out before were seen; run again when they have expired',
        );
      }
    },
  },
  {
    ids: ['2.1-expires_in'],
    name: 'a token handed out again has less of its life left',
    precondition: 'token',
    supplement: true,
    last: true,
    run: async (kit) => {
      const first = kit.client.firstMint;
      if (!first) return;
      const again = await kit.client.mint();
      const sameToken = member(first.json, 'access_token') === member(again.json, 'access_token');
      const elapsedSeconds = (again.startedAtMs - first.startedAtMs) / 1000;
      if (!sameToken || elapsedSeconds < 8) return;
      const before = Number(member(first.json, 'expires_in'));
      kit.check('2.1-expires_in', again, (exchange) => {
        const left = Number(member(exchange.json, 'expires_in'));
        return left > before - elapsedSeconds + 6
          ? differs(
              `expires_in: about ${Math.round(before - elapsedSeconds)} for the token of ${Math.round(elapsedSeconds)} s ago`,
              `expires_in: ${left}`,
            )
          : undefined;
      });
    },
  },
  {
    ids: ['4.1-post-only'],
    name: 'GET with the parameters of a token request',
    precondition: 'token',
    run: async (kit) => {
      const exchange = await kit.send(withQuery(kit, { method: 'GET' }));
      kit.ledger.observe('get-token', sayRefusal(exchange).slice(0, 3));
      kit.check('4.1-post-only', exchange, mintsNone);
    },
  },
  {
    ids: ['4.1-no-query-credentials'],
    name: 'POST with the parameters in the query',
    precondition: 'token',
    run: async (kit) => {
      kit.check('4.1-no-query-credentials', await kit.send(withQuery(kit, { body: '' })), refused4xx);
    },
  },
];
