/** Invalid bodies, valid ones that break careless readers, and ones just below the kit's limits; tokens are issued. */
import { jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import { withTokenEndpoint, http, ITEMS, page, TENANT, token, tokenAnswer } from './tools.ts';
import type { NonImplementation } from './tools.ts';

const DEEP = 10_000;
const MANY = 1_000_000;

const typed = (body: string | Buffer, type = 'application/json'): ServiceAnswer => ({
  status: 200,
  headers: [['content-type', type]],
  body,
});

/** Injection test: clears a terminal, sets its title, closes markup and an attribute, and tries to run a script. */
export const SPELL =
  '\u001b[2J\u001b]0;owned\u0007\u009b31m"\'--></script></style><script>window.owned=1</script><img src=x onerror="window.owned=1"><svg onload=window.owned=1>](javascript:window.owned=1)|`\r\n::error::owned\u202e';

export const MANY_ITEMS = 'twenty thousand screenings on every page';
const [first] = ITEMS;
const items = (text: string): string => `{"items":[${text}],"links":{}}`;
const FIRST = JSON.stringify(first);
/** A page of one screening with further members. */
const withMembers = (members: string): ServiceAnswer => typed(items(FIRST.replace('}', `,${members}}`)));

const pages: Readonly<Record<string, () => ServiceAnswer>> = {
  'HTML for every page': () => typed('<!doctype html><title>Sign in</title>', 'text/html'),
  'an empty body for every page': () => typed(''),
  'invalid UTF-8 in every page': () =>
    typed(
      Buffer.concat([Buffer.from('{"items":[],"links":{},"x":"'), Buffer.from([0xff, 0xc0, 0x22, 0x7d])]),
    ),
  [`JSON ${DEEP} levels deep`]: () => typed(items(`${'['.repeat(DEEP)}${']'.repeat(DEEP)}`)),
  [`a screening ${DEEP} levels deep`]: () =>
    withMembers(`"more":${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
  'a screening 450 levels deep': () => withMembers(`"more":${'{"a":'.repeat(445)}1${'}'.repeat(445)}`),
  'duplicate keys': () => typed(items(FIRST.replace('{', '{"id":9,"tenantId":"","testTime":0,'))),
  'numbers like 1e400': () =>
    typed(items('{"id":1e400,"tenantId":1e400,"testTime":-1e400},{"id":1E-400,"testTime":"1e400"}')),
  'an id of a million digits': () => typed(items(FIRST.replace('"id":1', `"id":1${'0'.repeat(MANY)}`))),
  '__proto__ and constructor as keys': () =>
    typed(
      `{"__proto__":{"items":[],"owned":true},"constructor":{"prototype":{"owned":true}},"items":[${FIRST.replace('{', '{"__proto__":{"id":1},"toString":1,"hasOwnProperty":null,')}],"links":{"__proto__":{"next":"x"}}}`,
    ),
  'items of wrong types': () =>
    page([1, 'x', true, [], [[]], {}, { id: {}, tenantId: [], testTime: {} }, { id: '1', testTime: 1 }]),
  'null items': () => page([null, null, first]),
  'items that is no array': () => jsonAnswer(200, { items: { 0: first, length: 1 }, links: [] }),
  'a page that is an array': () => typed('[]'),
  [MANY_ITEMS]: () => page(Array.from({ length: 20_000 }, (_, index) => ({ ...first, id: index + 1 }))),
  'a screening of a million fields': () =>
    withMembers(Array.from({ length: MANY }, (_, i) => `"f${i}":${i}`).join()),
  'a testTime of a hundred thousand characters': () =>
    page([{ id: 1, tenantId: TENANT, testTime: `2026-03-01T10:00:00.${'1'.repeat(MANY / 10)}Z` }, first]),
  'terminal codes and HTML in every string': () => ({
    ...jsonAnswer(200, {
      items: [{ id: 1, tenantId: SPELL, testTime: SPELL, [SPELL]: SPELL }, { id: SPELL }],
      links: { next: SPELL },
      [SPELL]: SPELL,
    }),
    headers: [
      ['content-type', 'application/json; x="<script>window.owned=1</script>"'],
      ['link', '<javascript:window.owned=1>; rel="next"; title="\u009b31m<script>"'],
    ],
  }),
  'terminal codes and HTML in every refusal': () =>
    jsonAnswer(400, { code: SPELL, error: SPELL, error_description: SPELL, message: SPELL }),
};

const tokens: Readonly<Record<string, () => ServiceAnswer>> = {
  'a token that is no JWT': () => tokenAnswer('opaque'),
  'a token that is an object with the member toString': () =>
    jsonAnswer(200, { ...(JSON.parse(String(tokenAnswer().body)) as object), access_token: { toString: 1 } }),
  'a token with a letter that no header can carry': () => tokenAnswer(`${token()}\u2603`),
  'a token with blanks and line ends': () => tokenAnswer('a b\r\nx-owned: 1'),
  'a token of 1 MB': () => tokenAnswer('x'.repeat(1e6)),
  'a token whose exp has passed': () => tokenAnswer(token({ exp: 1 })),
  'a token whose exp is 1e400': () =>
    tokenAnswer(
      `e30.${Buffer.from(`{"exp":1e400,"iat":-1e400,"tenant_id":"${TENANT}"}`).toString('base64url')}.AA`,
    ),
  'a token with huge claims': () =>
    tokenAnswer(token({ scope: 'x '.repeat(20_000), sub: SPELL, iss: SPELL })),
  'a token with claims of deep JSON': () =>
    tokenAnswer(`e30.${Buffer.from('['.repeat(20_000)).toString('base64url')}.AA`),
  'a token for a tenant of another path': () =>
    tokenAnswer(token({ tenant_id: '../../../admin?x=#\r\nx-owned: 1' })),
  'expires_in of 1e400 and a token_type of markup': () =>
    jsonAnswer(200, `{"access_token":"${token()}","token_type":${JSON.stringify(SPELL)},"expires_in":1e400}`),
  'terminal codes and HTML for every token': () =>
    jsonAnswer(400, { error: SPELL, error_description: SPELL, [SPELL]: SPELL }),
};

export const BODIES: readonly NonImplementation[] = [
  ...Object.entries(pages).map(([name, answer]) => http(name, withTokenEndpoint(answer))),
  ...Object.entries(tokens).map(([name, answer]) =>
    http(name, async ({ path }) => (path.endsWith('/oauth/token') ? answer() : page())),
  ),
];
