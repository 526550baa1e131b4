/** The state that a run leaves in the keepToken file, and the faults that a later run finds with it. */
import { generateKeyPairSync } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { tokenOf } from '../../reference-server/faults/bearer.ts';
import { eachItem } from '../../reference-server/faults/rows.ts';
import { jsonAnswer, type ServiceAnswer } from '../../reference-server/http/http.ts';
import {
  answering,
  both,
  emptyPage,
  isScreenings,
  middleware,
  minting,
  nextQuery,
  onPages,
  verifying,
  withHeader,
} from '../../reference-server/run/alter.ts';
import { dated } from '../../reference-server/variants/health.ts';
import type { TokenClaims } from '../../reference-server/parts.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import type { RequirementId } from '../../engine/requirements.ts';
import { certifyServer, failedOf, resultOf, saidOf, type Mode } from './faults.ts';
import type { Report } from '../report/report.ts';

const newKey = (): string =>
  String(
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );

const AGED_SECONDS = 40 * 60;
const IDS = '5-valid-token 4.2-repeatable 2.3-id-stable 5-expired';

/** Answers requests with tokens that another process minted with an empty page. */
function onlyOwnTokens(): ServerOptions {
  const own = new Set<string>();
  return both(
    minting(() => async (claims, real) => {
      const token = await real(claims);
      own.add(token);
      return token;
    }),
    middleware(() => async (request, next) => {
      const answer = await next(request);
      const isServed = answer.status === 200 && isScreenings(request);
      return isServed && !own.has(tokenOf(request)) ? emptyPage() : answer;
    }),
  );
}

/** Each server is correct by itself: the fault appears only to a client of an earlier run. */
const FAULTS: Readonly<Record<string, readonly [id: RequirementId, words: RegExp, server: ServerOptions]>> = {
  'a restart makes a new signing key': [
    '5-valid-token',
    /200: the token lasts \d+ s more.*401.*issued to an earlier run/,
    { signingKeyPem: newKey() },
  ],
  'a token of the process before gets empty pages': [
    '5-valid-token',
    /1 items, as with another token.*no items, issued to an earlier run/,
    onlyOwnTokens(),
  ],
  'a token ends after half an hour, whatever its exp says': [
    '5-valid-token',
    /200: the token lasts 11\d\d s more.*401.*issued to an earlier run/,
    verifying(() => async (token, nowSeconds, real) => {
      const claims = await real(token, nowSeconds);
      return claims && nowSeconds - claims.iat > 1_800 ? undefined : claims;
    }),
  ],
  'a deployment gives some screenings other ids': [
    '2.3-id-stable',
    /id \d+ for the screening at .*, as an earlier run saw it.*id \d+/,
    eachItem((item) => {
      const id = item.id % 3n === 0n ? item.id + 1_000_000_000n : item.id;
      return { ...item, id, json: item.json.replace(/"id":\d+/, `"id":${id}`) };
    }),
  ],
};

async function twice(
  world: World,
  later: ServerOptions,
  earlier: ServerOptions = {},
  agedSeconds = AGED_SECONDS,
  mode: Mode = 'bare',
): Promise<{ file: string; fileMode: number; reports: readonly Report[] }> {
  const directory = test.info().outputPath();
  const keepToken = join(directory, 'kept', 'state');
  const signingKeyPem = newKey();
  const run = (options: ServerOptions): Promise<Report> =>
    certifyServer(world, { signingKeyPem, ...options }, mode, {
      ...{ runs: 1, only: IDS, pollingScale: 0.1 },
      change: (target) => ({ ...target, keepToken }),
    });
  const first = await run({ ...earlier, now: () => Date.now() - agedSeconds * 1_000 });
  const second = await run(later);
  return {
    file: await readFile(keepToken, 'utf8'),
    fileMode: (await stat(keepToken)).mode & 0o777,
    reports: [first, second],
  };
}

test('keeps a token, two next and twenty screenings, which are valid in the next run', async ({ small }) => {
  const { file, fileMode, reports } = await twice(small, {});
  expect(reports.map(failedOf)).toEqual([[], []]);
  expect(fileMode).toBe(0o600);
  const kept = JSON.parse(file) as { token: string; nexts: unknown[]; screenings: unknown[] };
  expect(kept.token.split('.')).toHaveLength(3);
  expect([kept.nexts.length, kept.screenings.length]).toEqual([2, 20]);
  const second = reports[1]!;
  expect(second.coverage.oldestTokenSeconds).toBeGreaterThanOrEqual(AGED_SECONDS);
  expect(resultOf(second, '5-valid-token').title).toMatch(/seen up to 24\d\d s after it was issued$/);
});

const LATER = 'supplies a later run with an expired token, and keeps a valid one again';
test(LATER, byTurns(LATER, 3), async ({ small }) => {
  const { file, reports } = await twice(small, {}, {}, 2 * 3_600);
  const [first, second] = reports.map((report) => saidOf(report, '5-expired'));
  expect([first?.split(':')[0], second]).toEqual(['untested', 'pass']);
  const [, claims = ''] = (JSON.parse(file) as { token: string }).token.split('.');
  const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number };
  expect(exp).toBeGreaterThan(Date.now() / 1_000);
});

const LATE = 'the Date of a proxy that is ten minutes late does not prolong an earlier token';
test(LATE, byTurns(LATE, 3), async ({ small }) => {
  const { reports } = await twice(small, dated(-600_000), {}, 3_900);
  expect(reports.map(failedOf)).toEqual([[], []]);
});

/** Accepts a token that it has verified once for ever. */
function neverLooksAgain(): ServerOptions {
  const verified = new Map<string, TokenClaims>();
  return verifying(() => async (token, nowSeconds, real) => {
    const claims = verified.get(token) ?? (await real(token, nowSeconds));
    if (claims) verified.set(token, claims);
    return claims;
  });
}

for (const [what, expected, server] of [
  [
    'a cache of verified tokens that outlives them',
    /^fail: .*401 unauthenticated.*200.*, (3[5-7]\d\d|\d) s after its exp/,
    neverLooksAgain(),
  ],
  ['a cache of verified tokens that ends with them', /^pass$/, {}],
] as const) {
  test(`sends the kept token beside a supplied one: ${what}`, byTurns(what, 4), async ({ small }) => {
    const { reports } = await twice(small, server, server, 2 * 3_600, 'full');
    expect(saidOf(reports[1]!, '5-expired')).toMatch(expected);
  });

  test(`awaits its own token’s exp beside a supplied one: ${what}`, byTurns(what, 4), async ({ small }) => {
    const options = { only: '5-expired', waitForExpiry: true };
    const report = await certifyServer(small, { ...server, tokenLifetimeSeconds: 2 }, 'full', options);
    expect(saidOf(report, '5-expired')).toMatch(expected);
  });
}

for (const [what, [id, words, server]] of Object.entries(FAULTS))
  test(what, byTurns(what), async ({ small }) => {
    const { reports } = await twice(small, server);
    expect(failedOf(reports[0]!)).toEqual([]);
    expect(saidOf(reports[1]!, id)).toMatch(words);
  });

const withCursor = (process: string): ServerOptions => nextQuery((query) => query.set('cursor', process));

const ownCursors = (otherwise: () => ServiceAnswer): ServerOptions =>
  both(
    withCursor('b'),
    answering(otherwise, (_, query) => ![null, 'b'].includes(query.get('cursor'))),
  );

for (const [what, words, later] of [
  [
    'is rejected',
    /200: this next was given \d+ minutes ago.*400/,
    ownCursors(() => jsonAnswer(400, { code: 'invalid_request' })),
  ],
  ['is a page without items', /items again|200: this next.*no items/, ownCursors(emptyPage)],
  [
    'has no next',
    /4.2-repeatable.*200: this next was given.*no next/,
    both(
      withCursor('b'),
      onPages((answer, query) => {
        if (query.get('cursor') !== 'a') return answer;
        const body = String(answer.body).replace(/"links":.*$/, '"links":{}}');
        return withHeader({ ...answer, body }, 'link', undefined);
      }),
    ),
  ],
] as const)
  test(`a next of the process before ${what}`, byTurns(what), async ({ small }) => {
    const { reports } = await twice(small, later, withCursor('a'));
    expect(failedOf(reports[0]!)).toEqual([]);
    expect(failedOf(reports[1]!).join('\n')).toMatch(words);
  });
