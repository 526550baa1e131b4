/** Section 4.1: valid token requests in many dialects of HTTP, and a rejected request with compressed answers. */
import { about, test } from '../fixtures/test.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { sayToken } from '../engine/checks/token.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { readToken } from '../engine/client/token.ts';
import { dialectsOf, dialectsOn, toDialect } from '../engine/run/combinations/dialects.ts';
import type { Kit } from '../engine/run/kit.ts';
import { pairwise, seedFor, type Factors } from '../engine/run/state/covering-array.ts';

/** RFC 6749, appendix B defines the media type without parameters, so a charset must be ignored. */
const FORM = 'application/x-www-form-urlencoded';

const factorsOn = async (kit: Kit): Promise<Factors> => ({
  ...Object.fromEntries(
    (await dialectsOn(kit.client))
      .filter(({ name }) => name !== 'query')
      .map(({ name, levels }) => [name, Object.keys(levels)]),
  ),
  form: ['fields as documented', 'fields in reverse'],
  body: ['with Content-Length', 'in chunks'],
  type: [FORM, `${FORM}; charset=UTF-8`, `${FORM};charset=utf-8`],
});

/** RFC 9110, 15.5.12: a server may insist on Content-Length. */
const acceptedOr411: Judge = (exchange) =>
  readToken(exchange) || (exchange.request.isChunked && exchange.status === 411)
    ? undefined
    : differs(
        `200 with a token, Content-Type: ${exchange.request.headers['content-type']}`,
        sayToken(exchange),
      );

async function tokenDialects(kit: Kit): Promise<void> {
  for (const row of pairwise(await factorsOn(kit), seedFor(kit.options.seed, 'token dialects'))) {
    const form = kit.client.validForm('primary');
    const reversed = row['form'] === 'fields in reverse';
    const plain = toDialect(row)(kit.client.tokenRequest(reversed ? form.reverse() : form));
    const request: RequestOut = {
      ...plain,
      headers: { ...plain.headers, 'content-type': row['type']! },
      ...(row['body'] === 'in chunks' ? { isChunked: true } : {}),
    };
    kit.check('4.1-success', await kit.send(request), acceptedOr411, Object.values(row).join(', '));
    for (const dialect of dialectsOf(row)) kit.ledger.observe('dialects', dialect);
  }
  // The observers check the error response (7.1-body).
  const wrong = kit.client.tokenRequest([
    ['grant_type', 'password'],
    ...kit.client.validForm('primary').slice(1),
  ]);
  for (const coding of ['gzip', 'br'])
    await kit.send({ ...wrong, headers: { ...wrong.headers, 'accept-encoding': coding } });
}

test(
  '200: valid token requests in many dialects of HTTP',
  about(['4.1-success', '7.1-body'], { needs: 'token', access: 'reads', isSupplement: true }),
  ({ kit }) => tokenDialects(kit),
);
