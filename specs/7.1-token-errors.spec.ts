/** Section 7.1: which token requests are rejected, and with which error. */
import { about, test } from '../fixtures/test.ts';
import { swapCase } from '../engine/client/altered-token.ts';
import { OFFERED_SCOPE } from '../engine/client/client.ts';
import { isHang, type Exchange } from '../engine/client/exchange.ts';
import { isGuardRefusal } from '../engine/client/guards.ts';
import { excerpt, member } from '../engine/client/json.ts';
import { isClientError } from '../engine/checks/errors.ts';
import { differs, UNLESS, type Judge } from '../engine/checks/mismatch.ts';
import { readToken } from '../engine/client/token.ts';
import { tokenFactorsOn, toTokenDialect } from '../engine/run/combinations/dialects.ts';
import type { Kit } from '../engine/run/kit.ts';
import { pairwise, seedFor } from '../engine/run/state/covering-array.ts';
import { isUuid } from '../engine/data/dataset.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { ClientName } from '../engine/target/target.ts';
import { refusedAs, refusedGrant, sayToken, scopesOf } from '../engine/checks/token.ts';
import { unlessUntested } from '../engine/errors.ts';
import { readable } from '../engine/run/rules/raw-request.ts';
import {
  checkWrongSecretInBasic,
  checkGuesses,
  ofSameShape,
  replaced,
  sendForm,
  wrongSecrets,
} from '../engine/run/rules/wrong-credentials.ts';
import type { Form, Guess } from '../engine/run/rules/wrong-credentials.ts';

const PARAMETERS = ['grant_type', 'client_id', 'client_secret', 'scope'] as const;

const BLANKS = [
  ['', 'empty'],
  ['  ', 'blank'],
] as const;

/** An empty parameter counts as missing (RFC 6749, section 3.2); a server that reads it as a value must reject that value. */
const refusedAsBlank = (name: (typeof PARAMETERS)[number]): Judge => {
  const other: Partial<Record<typeof name, [number, string]>> = {
    grant_type: [400, 'unsupported_grant_type'],
    client_id: [401, 'invalid_client'],
    client_secret: [401, 'invalid_client'],
    scope: [400, 'invalid_scope'],
  };
  const accepted = [[400, 'invalid_request'] as const, ...(other[name] ? [other[name]] : [])];
  return (exchange) =>
    accepted.some(([status, error]) => refusedAs(status, error)(exchange) === undefined)
      ? undefined
      : differs(accepted.map((pair) => pair.join(' ')).join(' or '), sayToken(exchange));
};

const refusedAsNoForm: Judge = (exchange) =>
  exchange.status === 415 ? undefined : refusedAs(400, 'invalid_request')(exchange);

/** Firewalls take quotes and braces in the name of a field for an attack. */
const refusedAsJsonForm: Judge = (exchange) =>
  exchange.status === 403 && isGuardRefusal(exchange) ? undefined : refusedAsNoForm(exchange);

type Provisioned = 'unauthorized' | 'invalidGrant';

/** Sends a client provisioned to cause one error; a mismatch also names a possible mistake in the target file. */
async function checkProvisioned(
  kit: Kit,
  name: Provisioned,
  id: RequirementId,
  error: string,
): Promise<void> {
  const refusal = refusedAs(400, error);
  const judge: Judge = (exchange) => {
    const mismatch = refusal(exchange);
    const unless = mismatch && suppliedWrongly(name, exchange);
    return unless ? { ...mismatch, received: `${mismatch.received}${UNLESS}${unless}` } : mismatch;
  };
  await sendForm(kit, id, kit.client.validForm(name), judge, name);
}

/** The mistake in the target file that would explain the same answer. */
function suppliedWrongly(name: Provisioned, { status, json }: Exchange): string | undefined {
  const said = member(json, 'error');
  if (status === 401 && said === 'invalid_client') return `clientId or clientSecret of clients.${name}`;
  if (status === 200) return `clients.${name} may use the grant`;
  const others = { unauthorized: 'invalid_grant', invalidGrant: 'unauthorized_client' };
  return said === others[name]
    ? 'clients.unauthorized and clients.invalidGrant in place of each other'
    : undefined;
}

/** A member that every object of JavaScript has: a look-up in an object that serves as a table finds it. */
const INHERITED = 'constructor';

/** The parameter that other grants exchange for a token; it must not turn an access token into a new one. */
const EXCHANGED = new Map([
  ['refresh_token', 'refresh_token'],
  ['urn:ietf:params:oauth:grant-type:jwt-bearer', 'assertion'],
  ['urn:ietf:params:oauth:grant-type:token-exchange', 'subject_token'],
]);

/** Values are case-sensitive (RFC 6749, section 1.5) and must match completely. */
const GRANTS = [
  ...['password', 'authorization_code', ...EXCHANGED.keys()],
  ...['CLIENT_CREDENTIALS', 'client_credentials_too', INHERITED],
];
/** The only scope offered in v1 is screenings.read (section 9), although libraries know openid by themselves. */
const SCOPES = [
  ...['openid', 'screenings.write', 'SCREENINGS.READ', 'screenings.read:all', 'screenings.*', INHERITED],
];

/** The client_id with the case of its letters inverted; empty if that is another client's, or a UUID (same value). */
function otherCaseIds(kit: Kit, clientId: string): string[] {
  const swapped = swapCase(clientId);
  const taken = Object.values(kit.target.clients).some((client) => client?.clientId === swapped);
  return taken || isUuid(clientId) ? [] : [swapped];
}

/** A form that must be rejected, the requirement of the documented error, and what is wrong with the form. */
interface ErrorRow {
  readonly id: RequirementId;
  readonly what: string;
  /** `token`: an access token of the client. */
  readonly form: (valid: Form, token: string) => Form;
  /** Defaults to 400 with the documented error; set if other answers are accepted too. */
  readonly judge?: Judge;
  /** A gateway may take it for an attack and answer it with any body. */
  readonly suspicious?: boolean;
}

const without = (form: Form, ...names: readonly string[]): Form =>
  form.filter(([key]) => !names.includes(key));

const duplicate = (form: Form, name: string, other?: string): Form =>
  form.flatMap((pair): Form => (pair[0] === name ? [pair, [name, other ?? pair[1]]] : [pair]));

function clientError(expected: string): Judge {
  return (answer) => (isClientError(answer) ? undefined : differs(expected, sayToken(answer)));
}

/** A server that looks at the other value first may report what is wrong with that one. */
const anyClientError = clientError('400 invalid_request');

const exchangedBy = (grant: string, token: string): Form => {
  const name = EXCHANGED.get(grant);
  return name
    ? [
        [name, token],
        [`${name}_type`, 'urn:ietf:params:oauth:token-type:access_token'],
      ]
    : [];
};

/** "Not equal" in MongoDB. */
const OPERATOR = '[$ne]';

/** Suffixes that some parsers read as a list or an operator of the parameter. */
const TYPED = [
  ['grant_type', '[]'],
  ['client_id', '[]'],
  ['client_secret', OPERATOR],
  ['scope', '[0]'],
] as const;

type Typed = readonly [name: (typeof PARAMETERS)[number], suffix: string];

const typedRow = ([name, suffix]: Typed): ErrorRow => ({
  id: '7.1-invalid_request-missing',
  what: `${name} is missing, and ${name}${suffix} is there`,
  form: (valid) =>
    valid.map(([key, value]) =>
      key === name ? [`${key}${suffix}`, suffix === OPERATOR ? 'x' : value] : [key, value],
    ),
  suspicious: suffix === OPERATOR,
  // Firewalls take the operator for an attack; Spring and Rocket read a list of one value as that value.
  judge:
    suffix === OPERATOR
      ? anyClientError
      : (exchange) => (exchange.status === 200 ? undefined : refusedAsBlank(name)(exchange)),
});

const ROWS: readonly ErrorRow[] = [
  ...PARAMETERS.map((name): ErrorRow => ({
    id: '7.1-invalid_request-missing',
    what: `${name} is missing`,
    form: (valid) => without(valid, name),
  })),
  ...TYPED.map(typedRow),
  ...PARAMETERS.flatMap((name) =>
    BLANKS.map(([value, label]): ErrorRow => ({
      id: '7.1-invalid_request-empty',
      what: `${name} is ${label}`,
      form: (valid) => replaced(valid, name, value),
      judge: refusedAsBlank(name),
    })),
  ),
  ...PARAMETERS.map((name): ErrorRow => ({
    id: '7.1-invalid_request-duplicated',
    what: `${name} is sent twice`,
    form: (valid) => duplicate(valid, name),
  })),
  ...(
    [
      ['grant_type', 'password', 'after'],
      ['client_id', 'kit-unknown', 'after'],
      ['client_secret', 'kit-unknown', 'before'],
      ['scope', 'kit.unknown', 'before'],
    ] as const
  ).map(([name, other, place]): ErrorRow => ({
    id: '7.1-invalid_request-duplicated',
    what: `${name} is sent twice, with ${other} ${place} the right value`,
    form: (valid) => {
      const twice = duplicate(valid, name, other);
      return place === 'after' ? twice : [...twice].reverse();
    },
    judge: anyClientError,
  })),
  ...GRANTS.map((grant): ErrorRow => ({
    id: '7.1-unsupported_grant_type',
    what: `grant_type=${grant.replace(/.*:/, '')}`,
    form: (valid, token) => [...replaced(valid, 'grant_type', grant), ...exchangedBy(grant, token)],
    // A server that has the grant for other clients may miss its token, its client or its permission.
    judge: EXCHANGED.has(grant) ? clientError('400 unsupported_grant_type') : refusedGrant(grant),
  })),
  ...SCOPES.map((scope): ErrorRow => ({
    id: '7.1-invalid_scope',
    what: `scope=${scope}, which no client has`,
    form: (valid) => replaced(valid, 'scope', scope),
  })),
  {
    id: '7.1-invalid_request-missing',
    what: 'client_id and client_secret are missing',
    form: (valid) => without(valid, 'client_id', 'client_secret'),
    judge: anyClientError,
  },
  // An unknown client has no secret, which must not equal a missing or empty one.
  {
    id: '7.1-invalid_request-missing',
    what: 'client_id is unknown, and client_secret is missing',
    form: (valid) => without(replaced(valid, 'client_id', 'kit-unknown'), 'client_secret'),
    judge: anyClientError,
  },
  {
    id: '7.1-invalid_request-empty',
    what: 'client_id is unknown, and client_secret is empty',
    form: (valid) => replaced(replaced(valid, 'client_id', 'kit-unknown'), 'client_secret', ''),
    judge: anyClientError,
  },
  typedRow(['client_id', OPERATOR]),
];

async function dialectOf(kit: Kit, turn: number): Promise<ReturnType<typeof toTokenDialect>> {
  const rows = await kit.once('dialects of refused token requests', async () =>
    pairwise(await tokenFactorsOn(kit.client), seedFor(kit.options.seed, 'refused token requests')),
  );
  return toTokenDialect(rows[turn % rows.length]!);
}

/** In turn the clients whose valid request is served: grants and scopes are often set per client. */
async function clientAt(kit: Kit, turn: number): Promise<ClientName> {
  // By pairs, since of each parameter an empty and a blank value follow one another; the next seed exchanges them.
  const other = (turn + 2 * (kit.options.seed + 1)) % 4 >= 2 && kit.target.clients.secondTenant;
  return other && (await unlessUntested(kit.token('secondTenant'))) ? 'secondTenant' : 'primary';
}

for (const [turn, row] of ROWS.entries()) {
  const { id, what, form, suspicious = false } = row;
  const error = /^7\.1-(\w+)/.exec(id)![1]!;
  const { judge = refusedAs(400, error) } = row;
  test(`${error}: ${what}`, about([id, '7.1-body'], { needs: 'token' }), async ({ kit }) => {
    const toDialect = await dialectOf(kit, turn);
    const client = await clientAt(kit, turn);
    const valid = kit.client.validForm(client);
    const token = (await unlessUntested(kit.token(client)))?.text ?? 'none';
    const usual = toDialect(kit.client.tokenRequest(valid));
    // Of two values of a parameter the order matters, which a dialect may reverse.
    const exchange = readable(await kit.send({ ...usual, form: form(usual.form!, token), suspicious }));
    // Where a valid request is not served in this dialect either, 4.1-success reports that.
    const isServed = judge(exchange) === undefined || readToken(await kit.send(usual)) !== undefined;
    if (isServed) kit.check(id, exchange, judge, what);
    else await sendForm(kit, id, form(valid, token), judge, what, { suspicious });
    // Repeated attempts without the secret may lock the client out, so valid credentials follow.
    if (what.startsWith('client_secret')) await kit.client.mint(client);
  });
}

test(
  'invalid_request: a body that is not a form',
  about('7.1-invalid_request-malformed', { needs: 'token' }),
  async ({ kit }) => {
    const { form, ...request } = kit.client.tokenRequest(kit.client.validForm('primary'));
    const body = JSON.stringify(Object.fromEntries(form!));
    for (const [type, judge] of [
      ['application/json', refusedAsNoForm],
      // Some servers recognize JSON by its first character.
      ['application/x-www-form-urlencoded', refusedAsJsonForm],
    ] as const) {
      const exchange = await kit.send({
        ...request,
        headers: { ...request.headers, 'content-type': type },
        body,
      });
      if (judge === refusedAsNoForm) kit.ledger.observe('json-token-request', String(exchange.status));
      kit.check('7.1-invalid_request-malformed', exchange, judge, type);
      if (isHang(exchange)) return;
    }
  },
);

test(
  'invalid_client: an unknown client_id',
  about(['7.1-invalid_client-id', '7.1-invalid_client-challenge', '7.1-body'], {
    needs: 'token',
    access: 'guesses',
  }),
  ({ kit }) => {
    const { clientId } = kit.target.clients.primary;
    const ids = [
      ofSameShape(clientId),
      INHERITED,
      `${clientId}@${'x'.repeat(255)}`,
      ...otherCaseIds(kit, clientId),
    ];
    const others = ids.filter((value) => value !== clientId);
    const guesses = others.map((value): Guess => ({ owner: 'primary', name: 'client_id', value }));
    return checkGuesses(kit, '7.1-invalid_client-id', guesses);
  },
);

test(
  'invalid_client: a wrong client_secret',
  about(
    ['7.1-invalid_client-secret', '7.1-invalid_client-challenge', '7.1-body', '4.1-success', '5-valid-token'],
    { needs: 'token', access: 'guesses' },
  ),
  async ({ kit }) => {
    await checkGuesses(kit, '7.1-invalid_client-secret', wrongSecrets(kit.target));
    const { clientSecret } = kit.target.clients.primary;
    const twice = `${clientSecret}\0${clientSecret}`;
    const form = replaced(kit.client.validForm('primary'), 'client_secret', twice);
    const answer = await kit.send({ ...kit.client.tokenRequest(form), suspicious: true });
    kit.ledger.observe('secret-after-nul', String(answer.status));
    await kit.client.mint('primary');
  },
);

/** Many servers read Basic too (RFC 6749, 2.3.1), in a branch of its own; others reject it for another reason. */
test(
  'no token: a wrong client_secret in Basic',
  about('7.1-invalid_client-secret', { needs: 'token', access: 'guesses', isSupplement: true }),
  async ({ kit }) => {
    // A server may take an empty client_secret for that of a public client.
    for (const secret of ['kit-unknown', '']) await checkWrongSecretInBasic(kit, secret);
  },
);

test(
  `invalid_scope, or granted without it: an unknown scope beside ${OFFERED_SCOPE}`,
  about(['7.1-scope-subset', '5-no-refresh-token'], { needs: 'token' }),
  async ({ kit }) => {
    for (const scope of [`${OFFERED_SCOPE} openid`, `offline_access ${OFFERED_SCOPE}`]) {
      const form = replaced(kit.client.validForm('primary'), 'scope', scope);
      const exchange = await sendForm(kit, '7.1-scope-subset', form, subsetOrRefused, 'a scope too many');
      kit.ledger.observe('scope-subset', sayToken(exchange));
    }
  },
);

test(
  'unauthorized_client: a client that may not use the grant',
  about('7.1-unauthorized_client', { needs: 'token' }),
  ({ kit }) => checkProvisioned(kit, 'unauthorized', '7.1-unauthorized_client', 'unauthorized_client'),
);

test(
  'invalid_grant: a client whose grant cannot be used',
  about('7.1-invalid_grant', { needs: 'token' }),
  ({ kit }) => checkProvisioned(kit, 'invalidGrant', '7.1-invalid_grant', 'invalid_grant'),
);

/** 200 with screenings.read alone, or 400 invalid_scope: sections 4.1 and 7.1 allow both. */
const subsetOrRefused: Judge = (exchange) => {
  if (exchange.status !== 200) return refusedAs(400, 'invalid_scope')(exchange);
  const scope = member(exchange.json, 'scope');
  return scopesOf(scope).join(' ') === OFFERED_SCOPE
    ? undefined
    : differs(`scope: "${OFFERED_SCOPE}" alone, or 400 invalid_scope`, `200 with scope: ${excerpt(scope)}`);
};
