/** GET {base_url}/v1/tenants/{tenantId}/screenings: one page of a tenant's screenings (4.2, errors of 7.2). */
import { compareInstants, type Instant, parseInstant } from '../../engine/data/instant.ts';
import { parseForm, errorAnswer, jsonAnswer, type ServiceAnswer } from './http.ts';
import { StoreUnavailable } from '../parts.ts';
import type { ServiceParts, StoredPage, TokenClaims, TokenIssuer } from '../parts.ts';

interface ScreeningsRequest {
  /** As in the path. */
  readonly tenantId: string;
  /** Raw, without the question mark. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The parsed parameters; `toText` is repeated in next as it was sent. */
interface PageRequest {
  readonly from: Instant;
  readonly to: Instant;
  readonly toText: string;
  readonly pageSize: number;
  readonly fromId: bigint | undefined;
}

const DEFAULT_PAGE_SIZE = '100';
const MAX_PAGE_SIZE = 1000n;
const INTEGER = /^-?\d+$/;
const NO_STORE = ['cache-control', 'no-store'] as const;

export async function answerScreenings(
  request: ScreeningsRequest,
  parts: ServiceParts,
): Promise<ServiceAnswer> {
  const now = parts.now();
  const claims = await authenticate(request.headers['authorization'], parts.tokens, Math.floor(now / 1000));
  if ('status' in claims) return claims;

  const waitSeconds = parts.limiter?.(claims.sub, now);
  if (waitSeconds !== undefined) {
    const retryAfter = [['retry-after', String(waitSeconds)]] as const;
    return errorAnswer(429, 'rate_limited', 'the rate limit is exceeded', retryAfter);
  }
  if (request.tenantId.toLowerCase() !== claims.tenant_id.toLowerCase())
    return errorAnswer(403, 'forbidden', 'this token is for another tenant');
  const asked = readPageRequest(request.query);
  if ('status' in asked) return asked;

  try {
    if (!(await parts.store.isOnboarded(claims.tenant_id)))
      return errorAnswer(404, 'not_found', 'this tenant is not onboarded');
    const { from, to, pageSize, fromId } = asked;
    const page = await parts.store.page({ tenantId: claims.tenant_id, from, to, pageSize, fromId });
    return pageAnswer(page, asked, `${parts.baseUrl}/v1/tenants/${request.tenantId}/screenings`);
  } catch (error) {
    return unavailable(error);
  }
}

/** The 503 if the store does not answer; throws any other error. */
export function unavailable(error: unknown): ServiceAnswer {
  if (!(error instanceof StoreUnavailable)) throw error;
  return errorAnswer(503, 'service_unavailable', 'the database does not answer, try again later');
}

/** Returns the claims of the bearer token (section 5), or the 401. */
export async function authenticate(
  authorization: string | undefined,
  tokens: TokenIssuer,
  nowSeconds: number,
): Promise<TokenClaims | ServiceAnswer> {
  const token = /^bearer +([\w.~+/-]+=*)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return unauthenticated('a bearer token is required', '');
  const claims = await tokens.verify(token, nowSeconds);
  return claims ?? unauthenticated('the token is invalid or has expired', ', error="invalid_token"');
}

const unauthenticated = (message: string, detail: string): ServiceAnswer =>
  errorAnswer(401, 'unauthenticated', message, [['www-authenticate', `Bearer realm="screenings"${detail}`]]);

function readPageRequest(query: string): PageRequest | ServiceAnswer {
  const fields = parseForm(query);
  if (!fields) return invalidRequest('the query is not percent-encoded UTF-8');
  for (const name of ['from', 'to', 'pageSize', 'from_id']) {
    if (fields.getAll(name).length > 1) return invalidRequest(`${name} occurs more than once`);
  }
  const [fromText, toText] = [fields.get('from'), fields.get('to')];
  if (fromText === null || toText === null) return invalidRequest('from and to are required');
  const from = parseInstant(fromText);
  const to = parseInstant(toText);
  if (!from || !to) {
    const wrong = from ? 'to' : 'from';
    return errorAnswer(400, 'invalid_time_range', `${wrong} is not an RFC 3339 date-time with an offset`);
  }
  if (compareInstants(to, from) < 0) return errorAnswer(400, 'invalid_time_range', 'to is earlier than from');

  const sizeText = fields.get('pageSize') ?? DEFAULT_PAGE_SIZE;
  if (!INTEGER.test(sizeText)) return invalidRequest('pageSize is not an integer');
  const pageSize = BigInt(sizeText);
  if (pageSize < 1n || pageSize > MAX_PAGE_SIZE)
    return errorAnswer(400, 'page_size_out_of_range', `pageSize must be from 1 to ${MAX_PAGE_SIZE}`);

  const idText = fields.get('from_id');
  if (idText !== null && !INTEGER.test(idText)) return invalidRequest('from_id is not an integer');
  const fromId = idText === null ? undefined : BigInt(idText);
  if (fromId !== undefined && BigInt.asIntN(64, fromId) !== fromId)
    return invalidRequest('from_id exceeds 64 bits');
  return { from, to, toText, pageSize: Number(pageSize), fromId };
}

const invalidRequest = (message: string): ServiceAnswer => errorAnswer(400, 'invalid_request', message);

/** Section 2.4. Joins the stored JSON texts of the items, so that they are returned unchanged. */
function pageAnswer({ items, more }: StoredPage, asked: PageRequest, resource: string): ServiceAnswer {
  const last = items.at(-1);
  const text = `{"items":[${items.map(({ json }) => json).join(',')}],"links":`;
  if (!more || !last) return jsonAnswer(200, `${text}{}}`, [NO_STORE]);
  // Rule 6 of 4.2.
  const { toText: to, pageSize } = asked;
  const query = { from: last.testTime, to, pageSize: String(pageSize), from_id: String(last.id) };
  const next = `${resource}?${new URLSearchParams(query)}`;
  return jsonAnswer(200, `${text}{"next":${JSON.stringify(next)}}}`, [
    ['link', `<${next}>; rel="next"`],
    NO_STORE,
  ]);
}
