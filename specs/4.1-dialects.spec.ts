/** Section 4.1: valid token requests in many dialects of HTTP. */
import { about, test } from '../fixtures/test.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { sayToken } from '../engine/checks/token.ts';
import { readToken } from '../engine/client/token.ts';
import { dialectsOf, tokenFactorsOn, toTokenDialect } from '../engine/run/combinations/dialects.ts';
import type { Kit } from '../engine/run/kit.ts';
import { pairwise, seedFor } from '../engine/run/state/covering-array.ts';

/** RFC 9110, 15.5.12: a server may insist on Content-Length. */
const acceptedOr411: Judge = (exchange) =>
  readToken(exchange) || (exchange.request.isChunked && exchange.status === 411)
    ? undefined
    : differs(
        `200 with a token, Content-Type: ${exchange.request.headers['content-type']}`,
        sayToken(exchange),
      );

async function tokenDialects(kit: Kit): Promise<void> {
  const factors = {
    ...(await tokenFactorsOn(kit.client)),
    body: ['with Content-Length', 'in chunks'],
  };
  for (const row of pairwise(factors, seedFor(kit.options.seed, 'token dialects'))) {
    const request = toTokenDialect(row)(kit.client.tokenRequest(kit.client.validForm('primary')));
    const isChunked = row['body'] === 'in chunks';
    const exchange = await kit.send({ ...request, ...(isChunked ? { isChunked } : {}) });
    kit.check('4.1-success', exchange, acceptedOr411, Object.values(row).join(', '));
    for (const dialect of dialectsOf(row)) kit.ledger.observe('dialects', dialect);
  }
}

test(
  '200: valid token requests in many dialects of HTTP',
  about('4.1-success', { needs: 'token', access: 'reads', isSupplement: true }),
  ({ kit }) => tokenDialects(kit),
);
