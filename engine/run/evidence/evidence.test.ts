/** A failure shows the beginning of a long answer, and no part of a secret. */
import { expect, test } from '@playwright/test';
import { pageObservers } from '../../checks/page.ts';
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import { answerTo, getOf } from '../../testing.ts';
import type { Target } from '../../target/target.ts';
import { failureOf, sameAnswerBefore, type Failure } from './evidence.ts';
import { createRedactor } from './redact.ts';

const SECRET = 'correct-horse-battery-staple';

const exchangeOf = (text: string, more: Partial<RequestOut> = {}, startedAtMs = 0): Exchange =>
  answerTo({ ...getOf('http://127.0.0.1/'), ...more }, text, 200, startedAtMs);

function failureIn(exchange: Exchange): Failure {
  const primary = { clientId: 'a', clientSecret: SECRET };
  const target = { headers: {}, clients: { primary } } as unknown as Target;
  const mismatch = { expected: 'a', received: 'b' };
  const { redact } = createRedactor([SECRET]);
  return failureOf(
    { id: '2.4-items', cause: '', mismatch, exchange, count: 1, values: [] },
    { target, redact },
  );
}

const shownOf = (text: string): string => failureIn(exchangeOf(text)).response;

test('a truncated answer contains no part of a secret', () => {
  for (let length = 4_900; length < 5_100; length++) {
    // The first four thousand characters are few after redaction.
    const text = `eyJ${'x'.repeat(4_000)}.eyJ9.z ${'-'.repeat(length - 4_900)} ${`${SECRET} `.repeat(40)}`;
    expect(shownOf(text.repeat(2))).not.toMatch(/corr|staple/);
  }
});

test('shows an answer whole, or truncated with an ellipsis', () => {
  expect(shownOf('one\n two')).toBe('200 one two');
  expect(shownOf('x'.repeat(600))).toBe(`200 ${'x'.repeat(600)}`);
  for (const length of [601, 5_000, 5_001, 100_000])
    expect(shownOf('x'.repeat(length))).toBe(`200 ${'x'.repeat(600)}…`);
});

test('shows type and body of a token request without the secret, and blanks at the ends of its values', () => {
  const sentBy = (more: Partial<RequestOut>): string =>
    failureIn(exchangeOf('', { channel: 'token', method: 'POST', ...more })).request;
  const form = [
    ['client_id', 'a'],
    ['client_secret', SECRET],
  ] as const;
  expect(sentBy({ headers: { 'content-type': 'application/x-www-form-urlencoded' }, form })).toBe(
    'POST http://127.0.0.1/ with application/x-www-form-urlencoded: client_id=a&client_secret=…',
  );
  const withBlanks = form.map(([name, value]): [string, string] => [name, `${value} \n`]);
  expect(sentBy({ headers: { 'content-type': 'application/x-www-form-urlencoded' }, form: withBlanks })).toBe(
    'POST http://127.0.0.1/ with application/x-www-form-urlencoded: client_id=a%20%0A&client_secret=…%20%0A',
  );
  const body = JSON.stringify(Object.fromEntries(form));
  const sent = sentBy({ headers: { 'content-type': 'application/json' }, body });
  expect(sent).toContain(' with application/json: {"client_id":"a","client_secret":"');
  expect(sent).not.toContain(SECRET);
});

test('commands send values around a secret, and a NUL', () => {
  const curlWith = (value: string): string =>
    failureIn(
      exchangeOf('', { channel: 'token', method: 'POST', form: [['client_secret', value]] }),
    ).curl!.replace(/.* (--data)/, '$1');
  expect(curlWith(`${SECRET} x`)).toBe(
    `--data-urlencode 'client_secret='"$SCREENINGS_CLIENT_SECRET"' x' 'http://127.0.0.1/'`,
  );
  expect(curlWith(`${SECRET}\0${SECRET}`)).toBe(
    `--data-raw 'client_secret='"$SCREENINGS_CLIENT_SECRET"'%00'"$SCREENINGS_CLIENT_SECRET" 'http://127.0.0.1/'`,
  );
});

const URL_OF = 'http://127.0.0.1/v1/tenants/a/screenings?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z';

test('shows where a page stops being valid JSON', () => {
  const judged = (text: string, encoding?: Exchange['encoding']): string[] =>
    pageObservers(() => undefined)
      .filter(({ id }) => id === '2.4-items')
      .flatMap(({ judge }) => judge({ ...exchangeOf(text, { url: URL_OF }), encoding })?.received ?? []);
  expect(judged('{"items":[1,],"links":{}}')).toEqual([
    expect.stringMatching(/^no JSON: .* at position 12 of 25$/),
  ]);
  expect(judged('')).toEqual(['no JSON: an empty body']);
  expect(judged('', 'not what Content-Encoding says')).toEqual([
    'no JSON: a body that is not what Content-Encoding says',
  ]);
  expect(judged('{"items":null}')).toEqual(['items: null']);
});

test('names an earlier request with the same answer if one parameter differs', () => {
  const pages = ['1', '2', '3'].map((id, at) =>
    exchangeOf(`page ${id === '3' ? 1 : id}`, { url: `${URL_OF}&from_id=${id}` }, 10 * at),
  );
  expect(sameAnswerBefore(pages[2], pages)).toBe(pages[0]);
  expect(sameAnswerBefore(pages[1], pages)).toBeUndefined();
  expect(sameAnswerBefore(pages[0], pages)).toBeUndefined();
});
