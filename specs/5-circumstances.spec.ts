/** Sections 5 and 7.2: who may not ask is refused in whatever circumstances. */
import { about, test } from '../fixtures/test.ts';
import {
  bearerOf,
  constantPart,
  cutTo,
  partsOf,
  withLetter,
  withMembers,
} from '../engine/client/altered-token.ts';
import { forge } from '../engine/client/forged-token.ts';
import type { Authorization, RequestOut } from '../engine/client/exchange.ts';
import { screeningsUrl } from '../engine/client/page.ts';
import type { Token } from '../engine/client/token.ts';
import type { Judge } from '../engine/checks/mismatch.ts';
import { refused, type Refusal } from '../engine/checks/refusal.ts';
import { askerOf, pathOf, type Ground } from '../engine/run/combinations/circumstances.ts';
import { levelOf, checksOf, type Rule, type Way } from '../engine/run/rules/everywhere.ts';
import { requireSecondTenant, type Kit } from '../engine/run/kit.ts';
import { NOBODY } from '../engine/run/rules/raw-request.ts';
import { bearerHeader, expiredBearer, forgedBearer } from '../engine/run/rules/unauthenticated.ts';
import { Untested } from '../engine/errors.ts';

/** Another answer to who asks, on a request that is valid otherwise: 401. */
const who =
  (authorization: (token: Token) => Authorization) =>
  (kit: Kit): Way => ({
    alter: async (request, ground) => ({
      ...request,
      authorization: authorization(await kit.token(askerOf(request, ground))),
    }),
    judge: refused(kit.target.errorCodePointer, [401, 'unauthenticated']),
  });

const bearer = (value: string): ((kit: Kit) => Way) =>
  who(() => bearerHeader(`Bearer ${value}`, `Bearer ${value}`));

const altered = (
  alter: (...parts: ReturnType<typeof partsOf>) => ReturnType<typeof partsOf>,
  label: string,
) => who(({ text }) => bearerOf(alter(...partsOf(text)), label));

const ways =
  (...all: readonly ((kit: Kit) => Way)[]) =>
  (kit: Kit): readonly Way[] =>
    all.map((way) => way(kit));

/** The same request on another tenant's path, in the case of the own. */
const onPathOf = (request: RequestOut, ground: Ground, tenantId: string): RequestOut => {
  const url = `${screeningsUrl(ground.baseUrl, tenantId)}?${request.url.split('?')[1]}`;
  return levelOf('path', pathOf(request))({ ...request, url }, ground);
};

const FORBIDDEN: Refusal = [403, 'forbidden'];
const NOT_FOUND: Refusal = [404, 'not_found'];

/** The specification says nothing of a tenant in upper case: whoever serves that may still know the others in lower case only. */
const refusedOnPath = (kit: Kit, as: Refusal, inUpperCase: Refusal): Judge => {
  const usual = refused(kit.target.errorCodePointer, as);
  const either = refused(kit.target.errorCodePointer, as, inUpperCase);
  return (exchange) => (pathOf(exchange.request) === 'a path in upper case' ? either : usual)(exchange);
};

const none = constantPart('');

const RULES: readonly Rule[] = [
  {
    id: '5-missing',
    name: 'no Authorization header, in many circumstances',
    without: ['token'],
    servedBefore: true,
    ways: ways(who(() => ({ kind: 'none' }))),
  },
  {
    id: '5-scheme',
    name: 'what is no bearer token, in many circumstances',
    without: ['token'],
    ways: ways(
      who(({ text }) => bearerHeader(`Basic ${text}`, 'Basic $TOKEN')),
      who(({ text }) => bearerHeader(text, '$TOKEN (without a scheme)', '$TOKEN')),
      who(() => bearerHeader('Bearer', 'Bearer (without a token)', 'Bearer')),
    ),
  },
  {
    id: '5-garbage',
    name: 'strings that are no token, in many circumstances',
    without: ['token'],
    ways: ways(bearer('garbage'), bearer('a.b.c'), bearer('null')),
  },
  {
    id: '5-tampered',
    name: 'altered tokens, in many circumstances',
    telling: 2,
    without: ['token'],
    ways: async (kit) => {
      if (!(await kit.token()).claims)
        throw new Untested('the access token is no JWT, so no part of it can be altered');
      return ways(
        altered((head, payload) => [head, payload, none], 'signature removed'),
        altered(
          (head, payload, signature) => [
            head,
            payload,
            withLetter(signature, signature.text.length >> 1, 'A'),
          ],
          'signature altered in its middle',
        ),
        altered(
          (head, payload, signature) => [head, payload, cutTo(signature, signature.text.length >> 1)],
          'signature cut short',
        ),
        altered(
          (head, payload) => [withMembers(head, { alg: 'none' }), payload, none],
          'alg: none, no signature',
        ),
      )(kit);
    },
  },
  {
    id: '5-forged',
    name: 'forged tokens, in many circumstances',
    without: ['token'],
    ways: async (kit) => {
      if (!(await kit.token()).claims)
        throw new Untested('the access token is no JWT, so there is none to be forged');
      return [
        {
          alter: async (request, ground) => {
            const token = await forge((await kit.token(askerOf(request, ground))).text);
            const label = 'Bearer (token signed with another key, ES256, named by jwk)';
            return {
              ...request,
              authorization: forgedBearer(token, label),
            };
          },
          judge: refused(kit.target.errorCodePointer, [401, 'unauthenticated']),
        },
      ];
    },
  },
  {
    id: '5-expired',
    name: 'an expired token, in many circumstances',
    without: ['tenant', 'token'],
    ways: async (kit) => {
      const expired = await expiredBearer(kit);
      return ways(who(() => expired))(kit);
    },
  },
  {
    id: '5-query-token',
    name: 'a token in the query, in many circumstances',
    without: ['token'],
    ways: (kit) => [
      {
        alter: async (request, ground) => ({
          ...request,
          url: `${request.url}&access_token=${(await kit.token(askerOf(request, ground))).text}`,
          authorization: { kind: 'none' },
        }),
        judge: refused(kit.target.errorCodePointer, [401, 'unauthenticated'], [400, 'invalid_request']),
      },
    ],
  },
  {
    id: '5-forbidden',
    name: "another tenant's path, in many circumstances",
    ways: async (kit) => {
      requireSecondTenant(kit);
      return [
        {
          alter: (request, ground) =>
            onPathOf(
              request,
              ground,
              ground.tenants[askerOf(request, ground) === 'primary' ? 'secondTenant' : 'primary']!,
            ),
          judge: refusedOnPath(kit, FORBIDDEN, NOT_FOUND),
        },
      ];
    },
  },
  {
    id: '5-forbidden-unknown',
    name: 'the path of a tenant that nobody has, in many circumstances',
    ways: (kit) => [
      {
        alter: (request, ground) => onPathOf(request, ground, NOBODY),
        judge: refused(kit.target.errorCodePointer, FORBIDDEN, NOT_FOUND),
      },
    ],
  },
  {
    id: '7.2-not_found',
    name: 'a tenant that is not onboarded, in many circumstances',
    without: ['tenant', 'token'],
    unserved: true,
    ways: async (kit) => {
      const tenantId = await kit.tenantOf('notOnboarded');
      return [
        {
          alter: (request, ground) => ({
            ...onPathOf(request, ground, tenantId),
            authorization: { kind: 'client', client: 'notOnboarded' },
          }),
          judge: refusedOnPath(kit, NOT_FOUND, FORBIDDEN),
        },
      ];
    },
  },
];

for (const check of RULES.flatMap(checksOf))
  test(check.title, about(check.ids, { ...check, isSupplement: true }), ({ kit }) => check.run(kit));
