/** Section 7.2: no malformed request makes the service fail, token requests included. The observers judge the answers. */
import { about, test } from '../fixtures/test.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { OFFERED_SCOPE } from '../engine/client/client.ts';
import { formEncode } from '../engine/client/transport.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import {
  failureAfter,
  inHalves,
  oddParameters,
  oddQueries,
  sendOddHeaders,
  tokenRequestOf,
  sendQuery,
  isSuspicious,
  unlessTokensHang,
  UNSTORABLE,
} from '../engine/run/rules/raw-request.ts';
import type { Exchange, RequestOut } from '../engine/client/exchange.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { replaced } from '../engine/run/rules/wrong-credentials.ts';
import type { Kit } from '../engine/run/kit.ts';
import { unlessUntested } from '../engine/errors.ts';

/** Outside of the 16 bits that some databases store. */
const ASTRAL = '%F0%9F%98%80';

/** Token requests with one parameter that databases reject as text: NUL, octets that are not UTF-8, astral characters. */
const oddForms = (kit: Kit, odd: string, values: readonly string[]): string[] =>
  values.map((value) =>
    kit.client
      .validForm('primary')
      .map(([name, usual]) => `${name}=${name === odd ? value : encodeURIComponent(usual)}`)
      .join('&'),
  );

/** Sends the body unchanged, whatever it contains. Without `type` it is a form; an empty `type` is left out. */
function sendForm(kit: Kit, body: string, type?: string): Promise<Exchange> {
  const { headers: usual, ...request } = tokenRequestOf(kit, body);
  const { 'content-type': _, ...untyped } = usual;
  const headers = type === undefined ? usual : type === '' ? untyped : { ...usual, 'content-type': type };
  return kit.send({ ...request, headers, suspicious: isSuspicious(body) });
}

test(
  'no 5xx: malformed queries, paths and headers',
  about('7.2-no-unprovoked-5xx', { needs: 'page' }),
  async ({ kit }) => {
    const tenantId = await kit.tenantOf();
    // An empty page may hide a failure.
    const { from, to } = (await unlessUntested(sampleDataOf(kit)))?.window ?? SOME_WINDOW;
    await mapConcurrently(oddQueries(), async (query) => {
      const said = sayRefusal(await sendQuery(kit, query)).slice(0, 3);
      if (query.includes('pageSize=10&pageSize=20')) kit.ledger.observe('repeated-parameter', said);
      if (query.includes('unknown=x')) kit.ledger.observe('unknown-parameter', said);
    });
    for (const [query, more] of oddParameters({ from, to }))
      await inHalves(more, async (some) => {
        const { status } = await sendQuery(kit, `${query}&${some.join('&')}`);
        return status === 200 || status >= 500;
      });
    const valid = kit.request(tenantId, { from, to, pageSize: 1 });
    const accepting = (accept: string) => ({ ...valid, headers: { ...valid.headers, accept } });
    const sent = (request: RequestOut) => async (): Promise<unknown> =>
      kit.send({ ...request, offPath: true });
    const onPath = (path: string): RequestOut => ({
      ...valid,
      url: valid.url.replace(tenantId, path),
      suspicious: isSuspicious(path),
    });
    const header = {
      kind: 'header',
      value: `Bearer \u00e9${'x'.repeat(2_500)}`,
      label: 'Bearer éx…',
      shell: "Bearer $(printf '\\351'; head -c 2500 /dev/zero | tr '\\0' x)",
    } as const;
    const asks = [
      async () =>
        kit.ledger.observe(
          'path-not-a-uuid',
          sayRefusal(await kit.send({ ...onPath('not-a-uuid'), offPath: true })),
        ),
      ...['%00', '%zz', `${tenantId}%2F..`, 'x'.repeat(1_000)].map((odd) => sent(onPath(odd))),
      ...['text/html', 'application/xml;q=x', 'nothing'].map((accept) => sent(accepting(accept))),
      // A rejection may find no representation that the client accepts.
      sent({ ...accepting('text/html'), url: valid.url.replace(/1$/, '0') }),
      sent({ ...accepting('text/html'), authorization: { kind: 'none' } }),
      // From a frame or a file: what Spring is told of origins may contradict itself, and this one is no URL.
      sent({ ...valid, headers: { ...valid.headers, origin: 'null' } }),
      // As scripts send it: without the headers of usual clients, and with a type of a body that is not there.
      sent({
        ...valid,
        isAnonymous: true,
        headers: { ...kit.target.headers, 'content-type': 'application/json' },
      }),
      // Half of the length that servers usually admit, but some admit less; and a letter that is not ASCII.
      async () => kit.send({ ...valid, authorization: header, suspicious: true }),
      async () => sendOddHeaders(kit, valid),
    ];
    await mapConcurrently<() => Promise<unknown>, unknown>(asks, (ask) => ask());
  },
);

test(
  'no 5xx: a valid request after one that a store may refuse',
  about('7.2-no-unprovoked-5xx', { needs: 'page', isSupplement: true }),
  async ({ kit }) => {
    for (const odd of UNSTORABLE)
      await kit.checkAll({ id: '7.2-no-unprovoked-5xx', cause: 'after a refusal', needsAgain: true }, () =>
        failureAfter(kit, odd),
      );
  },
);

test(
  'no 5xx: malformed token requests',
  about(['7.2-no-unprovoked-5xx', '7.1-body'], { needs: 'token', access: 'reads late' }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    // The first one is longer than a usual column, too.
    const odd = [`${ASTRAL}%22%27%5C${'x'.repeat(255)}`, 'a%00b', '%ff%fe', '%ED%A0%80'];
    // A table of granted scopes may hold each one once.
    odd.push(`${OFFERED_SCOPE}+${OFFERED_SCOPE}`);
    // Sent as a body, so that no observer expects the errors of section 7.1: a filter may reject the odd header first.
    const long = tokenRequestOf(kit, `grant_type=${'x'.repeat(6_000)}`);
    // Basic, which many servers decode too (RFC 6749, 2.3.1): no Base64; where a decoder skips what is none, no UTF-8.
    await kit.send({ ...long, headers: { ...long.headers, authorization: 'Basic %/w==' } });
    // Beside a form that a server may check first, also without a colon.
    const valid = tokenRequestOf(kit, formEncode(kit.client.validForm('primary')));
    for (const authorization of ['Basic %/w==', 'Basic YWJj'])
      await kit.send({ ...valid, headers: { ...valid.headers, authorization } });
    // Names that JavaScript objects have already, and one that occurs twice, as RFC 8707 has it: a map may reject it. In a
    // request of their own, since a server that rejects them does not read the scopes.
    const names = '__proto__=x&constructor[prototype]=y&hasOwnProperty=x&toString=x&resource=x&resource=y&';
    const bodies = [...oddForms(kit, 'scope', odd), `${valid.body}&${names}`];
    await mapConcurrently(bodies, (body) => sendForm(kit, body));
    await sendForm(kit, '', '');
    const untyped = '{"grant_type":1,"client_id":["x"],"client_secret":{},"scope":null}';
    for (const body of ['null', '{]', untyped]) await sendForm(kit, body, 'application/json');
    const password = replaced(kit.client.validForm('primary'), 'grant_type', 'password');
    const refused = tokenRequestOf(kit, formEncode(replaced(password, 'scope', 'kit.unknown')));
    await kit.send({ ...refused, headers: { ...refused.headers, accept: 'text/html' } });
    await sendOddHeaders(kit, valid);
    // Some servers end earlier tokens.
    await kit.client.mint();
  },
);

test(
  'no 5xx: a client_id that is not text, a long client_secret beyond ASCII',
  about('7.2-no-unprovoked-5xx', { needs: 'token', access: 'guesses', isSupplement: true }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    const ids = oddForms(kit, 'client_id', ['a%00b', '%ff%fe', `${ASTRAL}%22%27%5C`]);
    // Libraries fail beyond a limit of their own, such as 4,096 octets, or compare ASCII alone (Python's compare_digest).
    for (const body of [...ids, ...oddForms(kit, 'client_secret', [`%C3%A9${'x'.repeat(5_000)}`])]) {
      await sendForm(kit, body);
      await kit.client.mint();
    }
  },
);
