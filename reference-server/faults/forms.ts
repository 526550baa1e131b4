/** Building blocks for faults in reading token requests. */
import { parseForm, type ServiceRequest } from '../http/http.ts';
import { authenticating, both, intercepting, isTokenRequest, oauthError, requests } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { basicOf } from './bearer.ts';

export type Form = Map<string, Values>;
export type Values = readonly string[];

export const formOf = (request: ServiceRequest): Form => {
  const form = parseForm(request.body.toString()) ?? new URLSearchParams();
  return new Map([...form.keys()].map((name) => [name, form.getAll(name)]));
};

/** The first value of a field of a token request. */
export const fieldOf =
  (name: string) =>
  (request: ServiceRequest): string | undefined =>
    isTokenRequest(request) ? formOf(request).get(name)?.[0] : undefined;

/** The request with another form. */
export const asForm = (request: ServiceRequest, form: ConstructorParameters<typeof URLSearchParams>[0]) => ({
  ...request,
  headers: { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' },
  body: Buffer.from(new URLSearchParams(form).toString()),
});

/** Changes the forms of matching token requests. */
export const forms = (
  change: (form: Form) => void,
  where: (request: ServiceRequest) => boolean = () => true,
): ServerOptions =>
  requests((request) => {
    const isForm = request.headers['content-type']?.includes('urlencoded');
    if (!isTokenRequest(request) || request.method !== 'POST' || !isForm || !where(request)) return request;
    const form = formOf(request);
    change(form);
    const pairs = [...form].flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value]),
    );
    return asForm(request, pairs);
  });

/** Reads other values for one field; `read` gets an empty array if the field is absent. */
export const field = (name: string, read: (values: Values) => Values): ServerOptions =>
  forms((form) => {
    const values = read(form.get(name) ?? []);
    if (values.length > 0) form.set(name, values);
  });

export const single = (name: string, read: (text: string) => string): ServerOptions =>
  field(name, (values) => (values.length === 1 ? values.map(read) : values));

/** Where `read` changes the first value of a field, it replaces all values. */
export const first = (name: string, read: (text: string) => string): ServerOptions =>
  field(name, (values) => {
    const [shown = ''] = values;
    return values.length > 0 && read(shown) !== shown ? [read(shown)] : values;
  });

type Credentials = readonly [id: string, secret: string];

/** Also accepts credentials that are like those of an earlier successful request. */
const alike = (isLike: (shown: Credentials, right: Credentials) => boolean): ServerOptions =>
  authenticating(() => {
    const rights = new Map<string, string>();
    return async (id, secret, real) => {
      const client = await real(id, secret);
      if (client) rights.set(id, secret);
      const right = client ? undefined : [...rights].find((known) => isLike([id, secret], known));
      return right ? real(...right) : client;
    };
  });
export const anySecret = (isLike: (shown: string, right: string) => boolean): ServerOptions =>
  alike(([id, secret], [rightId, right]) => id === rightId && isLike(secret, right));
export const anyClient = (isLike: (shown: string, right: string) => boolean): ServerOptions =>
  alike(([id], [right]) => id !== right && isLike(id, right));

/** In place of a client_secret that is not compared. */
const UNCOMPARED = 'not compared';
/** Accepts the client_secret of the forms that `change` gives the value UNCOMPARED. */
export const uncompared = (change: (form: Form, value: string) => void): ServerOptions =>
  both(
    anySecret((shown) => shown === UNCOMPARED),
    forms((form) => change(form, UNCOMPARED)),
  );

/** Reads the credentials of Basic in place of those of the form. */
export const authenticatedByBasic = (read = (secret: string): string => secret): ServerOptions =>
  requests((request) => {
    const basic = basicOf(request);
    if (!isTokenRequest(request) || basic === undefined) return request;
    const form = parseForm(request.body.toString()) ?? new URLSearchParams();
    const [id = '', secret = ''] = basic.split(':').map(decodeURIComponent);
    form.set('client_id', id);
    form.set('client_secret', read(secret));
    return asForm(request, form);
  });

/** Accepts any matching client_secret in Basic. */
export const uncomparedInBasic = (where = /^/): ServerOptions =>
  both(
    anySecret((shown) => shown === UNCOMPARED),
    authenticatedByBasic((secret) => (where.test(secret) ? UNCOMPARED : secret)),
  );

/** Answers matching token requests with an error such as `400 invalid_request`. */
export const refusing = (
  statusAndError: string,
  where: (request: ServiceRequest, form: Form) => boolean,
): ServerOptions => {
  const [status, error = ''] = statusAndError.split(' ');
  return intercepting(
    () => oauthError(Number(status), error),
    (request) => isTokenRequest(request) && where(request, formOf(request)),
  );
};

/** Whether the first value of a field matches. */
export const hasField =
  (name: string, value = /^/) =>
  (_: ServiceRequest, form: Form): boolean =>
    form.has(name) && value.test(form.get(name)![0]!);
