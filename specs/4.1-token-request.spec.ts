/** Section 4.1: the token request. */
import { about, test } from '../fixtures/test.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { member } from '../engine/client/json.ts';
import { formEncode } from '../engine/client/transport.ts';
import { isClientError, sayRefusal } from '../engine/checks/errors.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { refusedAs, sayToken, unknownIgnored } from '../engine/checks/token.ts';
import { readToken } from '../engine/client/token.ts';
import { dialectsOf, tokenFactorsOn, toTokenDialect } from '../engine/run/combinations/dialects.ts';
import { pairwise, seedFor } from '../engine/run/state/covering-array.ts';
import type { Kit } from '../engine/run/kit.ts';
import { replaced, sendForm } from '../engine/run/rules/wrong-credentials.ts';
import { mintAll, unlessTokensHang } from '../engine/run/rules/raw-request.ts';

const mintsNone: Judge = (exchange) =>
  exchange.status >= 400 || member(exchange.json, 'access_token') === undefined
    ? undefined
    : differs('no token', `${exchange.status} with access_token`);

/** Accepts a 4xx with any body. */
const refused4xx: Judge = (exchange) =>
  mintsNone(exchange) ?? (isClientError(exchange) ? undefined : differs('a 4xx', sayRefusal(exchange)));

function withQuery(kit: Kit, fields: Partial<RequestOut>): RequestOut {
  const request = kit.client.tokenRequest([]);
  const url = `${request.url}?${formEncode(kit.client.validForm('primary'))}`;
  const { form: _, ...rest } = request;
  return { ...rest, url, offPath: true, ...fields };
}

/** Parameters that other OAuth profiles and products add to the four required ones. */
const UNKNOWN = [
  ['audience', 'urn:example:api'],
  ['resource', 'urn:example:api'],
  ['client_name', 'conformance kit'],
] as const;

test(
  '200: a valid token request of every client',
  about(['4.1-success', '4.1-content-type', '4.1-no-store'], { needs: 'token' }),
  ({ kit }) => mintAll(kit),
);

test(
  'unknown parameters are ignored or rejected',
  about('4.1-unknown-parameters', { needs: 'token' }),
  async ({ kit }) => {
    for (const [name, value] of UNKNOWN) {
      const form = [...kit.client.validForm('primary'), [name, value] as const];
      kit.check(
        '4.1-unknown-parameters',
        await kit.send(kit.client.tokenRequest(form)),
        unknownIgnored,
        name,
      );
    }
  },
);

test(
  'GET with the parameters of a token request issues no token',
  about('4.1-post-only', { needs: 'token', access: 'reads late' }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    const exchange = await kit.send(withQuery(kit, { method: 'GET' }));
    kit.ledger.observe('get-token', sayRefusal(exchange).slice(0, 3));
    kit.check('4.1-post-only', exchange, mintsNone);
  },
);

test(
  'POST with the parameters in the query issues no token',
  about('4.1-no-query-credentials', { needs: 'token', access: 'reads late' }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    kit.check('4.1-no-query-credentials', await kit.send(withQuery(kit, { body: '' })), refused4xx);
    // Only the secret in the query: it appears in the access log of every proxy.
    const form = kit.client.validForm('primary');
    const request = kit.client.tokenRequest(form.filter(([name]) => name !== 'client_secret'));
    const secret = formEncode(form.filter(([name]) => name === 'client_secret'));
    const exchange = await kit.send({ ...request, url: `${request.url}?${secret}`, offPath: true });
    kit.check('4.1-no-query-credentials', exchange, refused4xx, 'the secret alone');
  },
);

const acceptsForm: Judge = (exchange) => {
  if (readToken(exchange)) return undefined;
  const { headers, isPercentEncoded } = exchange.request;
  const spelling = isPercentEncoded ? ', unreserved characters percent-encoded' : '';
  return differs(`200 with a token, Content-Type: ${headers['content-type']}${spelling}`, sayToken(exchange));
};

/** A field of a controller that all requests share would show in the answers to the others. */
test(
  'concurrent token requests get their own answers',
  about(['7.1-unsupported_grant_type', '4.1-success'], { needs: 'token', isSupplement: true }),
  async ({ kit }) => {
    const refused = replaced(kit.client.validForm('primary'), 'grant_type', 'kit_unknown');
    const judge = refusedAs(400, 'unsupported_grant_type');
    await Promise.all([
      sendForm(kit, '7.1-unsupported_grant_type', refused, judge, 'beside a valid request'),
      kit.client.mint(),
    ]);
  },
);

test(
  '200: valid token requests in many dialects of HTTP',
  about('4.1-success', { needs: 'token', access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const factors = {
      ...(await tokenFactorsOn(kit.client)),
      body: ['with Content-Length', 'in chunks'],
    };
    for (const row of pairwise(factors, seedFor(kit.options.seed, 'token dialects'))) {
      const request = toTokenDialect(row)(kit.client.tokenRequest(kit.client.validForm('primary')));
      let exchange = await kit.send({ ...request, isChunked: row['body'] === 'in chunks' });
      if (exchange.request.isChunked) {
        kit.ledger.observe('chunked-token-request', sayToken(exchange));
        // Application servers that read Content-Length alone, such as WSGI, take the body for empty; Akamai answers 501.
        if (isClientError(exchange) || exchange.status === 501) exchange = await kit.send(request);
      }
      kit.check('4.1-success', exchange, acceptsForm, Object.values(row).join(', '));
      for (const dialect of dialectsOf(row)) kit.ledger.observe('dialects', dialect);
    }
  },
);
