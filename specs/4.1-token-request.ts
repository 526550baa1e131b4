/** Section 4.1: the request that earns a token. */
import type { RequestOut } from '../fixtures/client/exchange.ts';
import { member } from '../fixtures/client/json.ts';
import { formEncode } from '../fixtures/client/transport.ts';
import { sayRefusal } from '../fixtures/checks/errors.ts';
import { differs, type Judge } from '../fixtures/checks/mismatch.ts';
import type { Kit } from '../fixtures/run/kit.ts';
import { mintAll } from '../fixtures/run/mint-all.ts';
import { observed, type Probe } from '../fixtures/run/probe.ts';

const mintsNone: Judge = (exchange) =>
  exchange.status >= 400 || member(exchange.json, 'access_token') === undefined
    ? undefined
    : differs('no token', `${exchange.status} with access_token`);

/** A client error, whatever its body. */
const refused4xx: Judge = (exchange) =>
  mintsNone(exchange) ??
  (exchange.status >= 400 && exchange.status < 500 ? undefined : differs('a 4xx', sayRefusal(exchange)));

function withQuery(kit: Kit, fields: Partial<RequestOut>): RequestOut {
  const request = kit.client.tokenRequest([]);
  const url = `${request.url}?${formEncode(kit.client.validForm('primary'))}`;
  const { form: _, ...rest } = request;
  return { ...rest, url, offPath: true, ...fields };
}

export const probes: readonly Probe[] = [
  observed(['4.1-success', '4.1-content-type', '4.1-no-store'], 'a token for every client', mintAll, 'token'),
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
