/** POST {auth_url}/oauth/token: the client credentials grant (section 4.1, errors of 7.1). */
import { isUtf8 } from 'node:buffer';
import { parseForm, jsonAnswer, type ServiceAnswer, type ServiceRequest } from './http.ts';
import { type Client, type ServiceParts, TooManyGuesses } from '../parts.ts';

type TokenError =
  | 'invalid_request'
  | 'invalid_client'
  | 'unauthorized_client'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_scope';

const GRANT = 'client_credentials';
const REQUIRED = ['grant_type', 'client_id', 'client_secret', 'scope'] as const;

const NO_STORE = [
  ['cache-control', 'no-store'],
  ['pragma', 'no-cache'],
] as const;
// HTTP has no scheme for credentials in a form; OAuth servers use Basic in this challenge.
const CHALLENGE = ['www-authenticate', 'Basic realm="token endpoint"'] as const;

export async function answerToken(
  request: Pick<ServiceRequest, 'headers' | 'body'>,
  parts: ServiceParts,
): Promise<ServiceAnswer> {
  const form = readForm(request);
  if (typeof form === 'string') return tokenError('invalid_request', form);
  if (form.grant_type !== GRANT) return tokenError('unsupported_grant_type', `grant_type must be ${GRANT}`);

  let client: Client | undefined;
  try {
    client = await parts.clients.authenticate(form.client_id, form.client_secret);
  } catch (error) {
    if (!(error instanceof TooManyGuesses)) throw error;
    return tooManyGuesses;
  }
  if (!client) return tokenError('invalid_client', 'client_id is unknown or client_secret is wrong');
  if (!client.grantTypes.includes(GRANT))
    return tokenError('unauthorized_client', `this client may not use ${GRANT}`);
  if (client.suspended) return tokenError('invalid_grant', "this client's grant is suspended");

  // Section 5, rule 7: the granted scope may be a part of the requested one.
  const requested = new Set(form.scope.split(' '));
  const scope = client.scopes.filter((offered) => requested.has(offered)).join(' ');
  if (scope === '') return tokenError('invalid_scope', 'no requested scope is granted to this client');

  const iat = Math.floor(parts.now() / 1000);
  const accessToken = await parts.tokens.mint({
    iss: parts.issuer,
    aud: parts.audience,
    sub: client.clientId,
    iat,
    exp: iat + parts.tokenLifetimeSeconds,
    scope,
    tenant_id: client.tenantId,
  });
  return jsonAnswer(
    200,
    { access_token: accessToken, token_type: 'Bearer', expires_in: parts.tokenLifetimeSeconds, scope },
    NO_STORE,
  );
}

type TokenForm = Readonly<Record<(typeof REQUIRED)[number], string>>;

/** Returns the form, or a description of what is wrong with it. */
function readForm({ headers, body }: Pick<ServiceRequest, 'headers' | 'body'>): TokenForm | string {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded')
    return 'the body must be application/x-www-form-urlencoded';
  const fields = isUtf8(body) ? parseForm(body.toString()) : undefined;
  if (!fields) return 'the form is not percent-encoded UTF-8';
  const repeated = [...fields.keys()].find((name) => fields.getAll(name).length > 1);
  if (repeated !== undefined) return `${printable(repeated)} occurs more than once`;
  // RFC 6749, 3.2: a parameter without a value counts as omitted.
  const missing = REQUIRED.find((name) => !fields.get(name)?.trim());
  if (missing) return `${missing} is missing`;
  return Object.fromEntries(fields) as TokenForm;
}

function tokenError(error: TokenError, description: string): ServiceAnswer {
  const body = { error, error_description: description };
  return error === 'invalid_client'
    ? jsonAnswer(401, body, [CHALLENGE, ...NO_STORE])
    : jsonAnswer(400, body, NO_STORE);
}

/** RFC 6749, 2.3.1 requires protection against guessing but defines no error for it. */
const tooManyGuesses = jsonAnswer(
  429,
  { error: 'temporarily_unavailable', error_description: 'too many requests with unconfirmed secrets' },
  [['retry-after', '1'], ...NO_STORE],
);

/** RFC 6749, 5.2 allows printable ASCII except quote and backslash in a description. */
const printable = (text: string): string => text.replace(/[^ !#-[\]-~]/g, '?').slice(0, 40);
