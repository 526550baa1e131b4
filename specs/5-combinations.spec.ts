/** Sections 5 and 7.2: unauthenticated and unauthorized requests are rejected, in pairwise combinations of factors. */
import { about, test } from '../fixtures/test.ts';
import {
  bearerOf,
  constantPart,
  partsOf,
  withAlteredSignature,
  withMembers,
} from '../engine/client/altered-token.ts';
import { forge } from '../engine/client/forged-token.ts';
import type { Authorization, RequestOut } from '../engine/client/exchange.ts';
import { screeningsUrl, SOME_WINDOW } from '../engine/client/page.ts';
import type { Token } from '../engine/client/token.ts';
import { UNLESS, type Judge } from '../engine/checks/mismatch.ts';
import { FORBIDDEN, NOT_FOUND, UNAUTHENTICATED, type Refusal, refused } from '../engine/checks/errors.ts';
import { combinedClientOf, pathOf, type Baseline } from '../engine/run/combinations/factors.ts';
import { levelOf, checksOf, type Rule, type Case } from '../engine/run/rules/in-combinations.ts';
import type { Check } from '../engine/run/check.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { Kit } from '../engine/run/kit.ts';
import { UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
import { bearerHeader, expiredBearer, forgedBearer } from '../engine/run/rules/unauthenticated.ts';
import { unlessUntested } from '../engine/errors.ts';

/** Replaces the authorization of a request that is otherwise valid; expects 401. */
const withAuthorization =
  (id: RequirementId, authorization: (token: Token) => Authorization | Promise<Authorization>) =>
  (kit: Kit): Case => ({
    id,
    alter: async (request, baseline) => ({
      ...request,
      authorization: await authorization(await kit.token(combinedClientOf(request, baseline))),
    }),
    judge: refused(kit, UNAUTHENTICATED),
  });

const COMBINATIONS_OF_A_CASE = 5;

/** Another one in each combination; the next seed goes on. */
const turning = (values: readonly string[], { options }: Kit): (() => string) => {
  let turn = (options.seed + values.length - 1) * COMBINATIONS_OF_A_CASE;
  return () => values[turn++ % values.length]!;
};

/** Schemes of other products for the same tokens. */
const SCHEMES = ['Basic', 'OAuth', 'Token', 'Digest', 'ApiKey', 'Session'];
/** What clients send by mistake, and developers leave as a way in. */
const NO_TOKENS = [
  ...['garbage', 'undefined', 'test', 'admin', 'dev', 'demo', 'guest', 'secret', 'token', '123'],
  ...['true', '0', 'debug', 'anonymous', 'dev-token'],
];

const otherScheme = (kit: Kit): Case => {
  const turn = turning(SCHEMES, kit);
  return withAuthorization('5-scheme', ({ text }) => {
    const scheme = turn();
    return bearerHeader(`${scheme} ${text}`, `${scheme} $TOKEN`);
  })(kit);
};

const noTokenAtAll = (kit: Kit): Case => {
  const turn = turning(
    NO_TOKENS.map((text) => `Bearer ${text}`),
    kit,
  );
  return withAuthorization('5-garbage', () => {
    const bearer = turn();
    return bearerHeader(bearer, bearer);
  })(kit);
};

const altered = (
  alter: (...parts: ReturnType<typeof partsOf>) => ReturnType<typeof partsOf>,
  label: string,
): ((kit: Kit) => Case) =>
  withAuthorization('5-tampered', ({ text }) => bearerOf(alter(...partsOf(text)), label));

const forged = withAuthorization('5-forged', async ({ text }) =>
  forgedBearer(await forge(text), 'Bearer (token signed with another key, named by jwk)'),
);

const inQuery = (kit: Kit): Case => ({
  id: '5-query-token',
  alter: async (request, baseline) => ({
    ...request,
    url: `${request.url}&access_token=${(await kit.token(combinedClientOf(request, baseline))).text}`,
    authorization: { kind: 'none' },
  }),
  judge: refused(kit, UNAUTHENTICATED, [400, 'invalid_request']),
});

/** The expired token belongs to primary: on another tenant's path it may be rejected for that reason. */
const expired = (kit: Kit, authorization: Authorization): Case => ({
  id: '5-expired',
  alter: (request, baseline) => ({ ...levelOf('tenant', 'as primary')(request, baseline), authorization }),
  judge: refused(kit, UNAUTHENTICATED),
});

const none = constantPart('');
const noToken = withAuthorization('5-missing', () => ({ kind: 'none' }));

/** Replacements for a valid token. The first ones are sent in every combination. */
const INFORMATIVE: readonly ((kit: Kit) => Case)[] = [noToken, otherScheme, noTokenAtAll, inQuery];
const INFORMATIVE_OF_JWT: readonly ((kit: Kit) => Case)[] = [
  altered((head, payload) => [head, payload, none], 'signature removed'),
  forged,
];
const OTHERS: readonly ((kit: Kit) => Case)[] = [
  withAuthorization('5-scheme', ({ text }) => bearerHeader(text, '$TOKEN (without a scheme)', '$TOKEN')),
];
const OTHERS_OF_JWT: readonly ((kit: Kit) => Case)[] = [
  altered((...parts) => withAlteredSignature(parts), 'signature altered in its middle'),
  altered((head, payload) => [withMembers(head, { alg: 'none' }), payload, none], 'alg: none, no signature'),
];

async function bearers(kit: Kit): Promise<readonly Case[]> {
  const isJwt = Boolean((await kit.token()).claims);
  const supplied = await unlessUntested(expiredBearer(kit));
  return [
    ...(supplied ? [expired(kit, supplied)] : []),
    ...[...(isJwt ? INFORMATIVE_OF_JWT : []), ...INFORMATIVE, ...OTHERS, ...(isJwt ? OTHERS_OF_JWT : [])].map(
      (create) => create(kit),
    ),
  ];
}

/** The same request on another tenant's path, spelled in the same way. */
const onPathOf = (request: RequestOut, baseline: Baseline, tenantId: string): RequestOut => {
  const url = `${screeningsUrl(baseline.baseUrl, tenantId)}?${request.url.split('?')[1]}`;
  return levelOf('path', pathOf(request, baseline))({ ...request, url }, baseline);
};

const onPathCase = (tenantId: string, judge: Judge): Case => ({
  alter: (request, baseline) => onPathOf(request, baseline, tenantId),
  judge,
});

/** Adds to the mismatch that the target file may be wrong instead. */
const unlessOnboarded =
  (judge: Judge): Judge =>
  (exchange) => {
    const mismatch = judge(exchange);
    return mismatch && exchange.status === 200
      ? {
          ...mismatch,
          received: `${mismatch.received}${UNLESS}the tenant of clients.notOnboarded is onboarded`,
        }
      : mismatch;
  };

/** A target that accepts its own tenantId in another case may still recognize other tenants only in the usual one. */
const refusedOnPath = (kit: Kit, as: Refusal, inAnotherCase: Refusal): Judge => {
  const usual = refused(kit, as);
  const either = refused(kit, as, inAnotherCase);
  return (exchange) =>
    (pathOf(exchange.request, kit.baseline!) === 'a path in another case' ? either : usual)(exchange);
};

const RULES: readonly Rule[] = [
  {
    id: '5-missing',
    alsoIds: ['5-scheme', '5-garbage', '5-tampered', '5-forged', '5-expired', '5-query-token'],
    name: 'unauthenticated: invalid tokens, in pairwise combinations',
    everywhere: INFORMATIVE.length + INFORMATIVE_OF_JWT.length + 1,
    without: ['token'],
    isLate: true,
    servedBefore: true,
    simplest: noToken,
    cases: bearers,
  },
  {
    id: '5-forbidden',
    name: "forbidden: another tenant's path, in pairwise combinations",
    cases: async (kit) => {
      await kit.tenantOf('secondTenant');
      return [
        {
          alter: (request, baseline) =>
            onPathOf(
              request,
              baseline,
              baseline.tenants[
                combinedClientOf(request, baseline) === 'primary' ? 'secondTenant' : 'primary'
              ]!,
            ),
          judge: refusedOnPath(kit, FORBIDDEN, NOT_FOUND),
        },
      ];
    },
  },
  {
    id: '5-forbidden-unknown',
    name: 'forbidden: the path of an unknown tenant, in pairwise combinations',
    alike: 2,
    cases: async (kit) => {
      const judge = refused(kit, FORBIDDEN, NOT_FOUND);
      const notOnboarded = await unlessUntested(kit.tenantOf('notOnboarded'));
      return [
        onPathCase(UNKNOWN_TENANT, judge),
        ...(notOnboarded ? [onPathCase(notOnboarded, unlessOnboarded(judge))] : []),
      ];
    },
  },
  {
    id: '7.2-not_found',
    name: 'not_found: a tenant that is not onboarded, in pairwise combinations',
    without: ['tenant', 'token'],
    cases: async (kit) => {
      const tenantId = await kit.tenantOf('notOnboarded');
      return [
        {
          alter: (request, baseline) => ({
            ...onPathOf(request, baseline, tenantId),
            authorization: { kind: 'client', client: 'notOnboarded' },
          }),
          judge: unlessOnboarded(refusedOnPath(kit, NOT_FOUND, FORBIDDEN)),
        },
      ];
    },
  },
];

/** The other rules are also sent as baseline requests, by 5-authentication, 5-tokens and 5-tenants. */
const isSupplementary = ({ ids, isSupplement }: Check): boolean =>
  isSupplement || !ids.includes('7.2-not_found');

for (const check of RULES.flatMap(checksOf))
  test(check.title, about(check.ids, { ...check, isSupplement: isSupplementary(check) }), ({ kit }) =>
    check.run(kit),
  );

const TIME_RANGE: Refusal = [400, 'invalid_time_range'];
const OUT_OF_RANGE: Refusal = [400, 'page_size_out_of_range'];
const INVALID_REQUEST: Refusal = [400, 'invalid_request'];

/** No order of checks is given, so that either mistake may be named. */
test(
  'a request with two mistakes is rejected for one of them',
  about(['5-missing', '5-forbidden-unknown', '7.2-invalid_time_range', '7.2-no-unprovoked-5xx'], {
    needs: 'page',
    access: 'reads',
    isSupplement: true,
  }),
  async ({ kit }) => {
    const own = await kit.tenantOf();
    const primary = { kind: 'client', client: 'primary' } as const;
    const malformed = `?from=abc&to=${encodeURIComponent(SOME_WINDOW.to)}`;
    const twice = `${malformed}&pageSize=0`;
    for (const [id, tenantId, query, by, ...accepted] of [
      ['5-missing', own, malformed, { kind: 'none' }, UNAUTHENTICATED, TIME_RANGE],
      ['5-forbidden-unknown', UNKNOWN_TENANT, malformed, primary, FORBIDDEN, NOT_FOUND, TIME_RANGE],
      ['7.2-invalid_time_range', own, twice, primary, TIME_RANGE, OUT_OF_RANGE, INVALID_REQUEST],
    ] as const) {
      const exchange = await kit.send(kit.request(tenantId, query, by));
      // The observers judge failures.
      const judge: Judge = (answer) => (answer.status < 500 ? refused(kit, ...accepted)(answer) : undefined);
      kit.check(id, exchange, judge, 'two mistakes');
    }
  },
);
