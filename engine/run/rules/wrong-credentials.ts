/** Wrong client ids and secrets, and token requests that must be rejected. */
import { swapCase } from '../../client/altered-token.ts';
import type { Authorization, Exchange, RequestOut } from '../../client/exchange.ts';
import { formEncode } from '../../client/transport.ts';
import { differs, type Judge, type MismatchWithEvidence } from '../../checks/mismatch.ts';
import { refusedAs, sayToken } from '../../checks/token.ts';
import { readToken } from '../../client/token.ts';
import { TargetLocked } from '../../errors.ts';
import type { RequirementId } from '../../requirements.ts';
import type { ClientName, Target } from '../../target/target.ts';
import { quote } from '../evidence/evidence.ts';
import type { Kit } from '../kit.ts';
import { preconditionsOf } from '../schedule/run-check.ts';
import { refusalOf } from '../observers/valid-token.ts';
import { readable, tokenRequestOf } from './raw-request.ts';

export type Form = readonly (readonly [string, string])[];

/** The form with another value of one parameter. */
export const replaced = (form: Form, name: string, value: string): Form =>
  form.map(([key, old]) => [key, key === name ? value : old]);

/** Sends a token request and judges its answer. */
export async function sendForm(
  kit: Kit,
  id: RequirementId,
  form: Form,
  judge: Judge,
  label: string,
  fields: Pick<RequestOut, 'suspicious'> = {},
): Promise<Exchange> {
  const exchange = readable(await kit.send({ ...kit.client.tokenRequest(form), ...fields }));
  kit.check(id, exchange, judge, label);
  return exchange;
}

/** Client authentication by Basic; `shell`: the secret for commands. */
export function basic(id: string, secret: string, label: string, shell = secret): Authorization {
  const [encodedId, encodedSecret] = [id, secret].map((text) => formEncode([['', text]]).slice(1));
  return {
    kind: 'header',
    value: `Basic ${Buffer.from(`${encodedId}:${encodedSecret}`).toString('base64')}`,
    label,
    shell: `Basic $(printf %s ${quote(encodedId!)}:${shell} | base64 | tr -d '\\n')`,
  };
}

/** Expects no token for a wrong secret in Basic. */
export async function checkWrongSecretInBasic(kit: Kit, secret: string): Promise<void> {
  const form = kit.client.validForm('primary').filter(([name]) => !name.startsWith('client_'));
  const label = `Basic (client_id of primary, client_secret ${quote(secret)})`;
  const authorization = basic(kit.target.clients.primary.clientId, secret, label);
  const exchange = await kit.send({ ...tokenRequestOf(kit, formEncode(form)), authorization });
  const judge: Judge = (answer) => readToken(answer) && differs('401 invalid_client', sayToken(answer));
  kit.check('7.1-invalid_client-secret', exchange, judge, 'in Basic');
  await kit.client.mint('primary');
}

/** A wrong client_id or client_secret, and the client whose right value it replaces. */
export interface Guess {
  readonly owner: ClientName;
  readonly name: 'client_id' | 'client_secret';
  readonly value: string;
}

const CYCLES = ['0123456789', 'abcdef', 'ghijklmnopqrstuvwxyz', 'ABCDEF', 'GHIJKLMNOPQRSTUVWXYZ'];

/** The text with each matching letter or digit replaced by the next one of its class. */
const turned = (text: string, which: RegExp): string =>
  text.replace(which, (letter) => {
    const cycle = CYCLES.find((letters) => letters.includes(letter))!;
    return cycle[(cycle.indexOf(letter) + 1) % cycle.length]!;
  });

/** A value of the same length and character classes, so that the server can only reject it as unknown. */
export const ofSameShape = (text: string): string => text.slice(0, -6) + turned(text.slice(-6), /[0-9a-z]/gi);

const shapeOf = (text: string): string =>
  [...text].map((letter) => CYCLES.findIndex((letters) => letters.includes(letter))).join();

/** Secrets similar to the right one, spread over all clients so that no client receives many wrong ones. */
export function wrongSecrets({ clients }: Target): Guess[] {
  const owners = (['primary', 'secondTenant', 'notOnboarded'] as const).filter((name) => clients[name]);
  const kinds: ((secret: string, clientId: string) => string)[] = [
    // A comparison may leave out the end.
    (secret) => turned(secret, /[0-9a-z](?=[^0-9a-z]*$)/i),
    // Begins and ends with the right one. bcrypt takes 72 octets, and some libraries fail on more.
    (secret) => `${secret}${'x'.repeat(72)}${secret}`,
    (secret) => secret.slice(0, -1),
    // Or the beginning.
    (secret) => turned(secret, /[0-9a-z]/i),
    swapCase,
    (secret) => `${secret} `,
    // The default secret of some servers.
    (_, clientId) => clientId,
  ];
  const near = kinds.map((kind, index): Guess => {
    const owner = owners[index % owners.length]!;
    const { clientId, clientSecret } = clients[owner]!;
    return { owner, name: 'client_secret', value: kind(clientSecret, clientId) };
  });
  const others = owners.slice(1).map((name) => clients[name]!.clientSecret);
  return [
    ...near,
    ...others.map((value): Guess => ({ owner: 'primary', name: 'client_secret', value })),
  ].filter(({ owner, value }) => value !== '' && value !== clients[owner]!.clientSecret);
}

/** A value that differs in shape from issued ones may also be rejected as malformed. */
const refusedGuess =
  (value: string, right: string): Judge =>
  (exchange) =>
    shapeOf(value) !== shapeOf(right) && refusedAs(400, 'invalid_request')(exchange) === undefined
      ? undefined
      : refusedAs(401, 'invalid_client')(exchange);

/** The share of the timeout by which an answer to a guess may be later than one to right credentials. */
const LONGEST_DELAY_SHARE = 1 / 4;

/** Each guess must be rejected as invalid_client. Valid credentials in between reset the failure count of most lockouts. */
export async function checkGuesses(kit: Kit, id: RequirementId, guesses: readonly Guess[]): Promise<void> {
  // Without a page, a token could not be seen to be refused because of a guess.
  const hasPage = (await preconditionsOf(kit)).page === undefined;
  for (const [done, { owner, name, value }] of guesses.entries()) {
    try {
      const valid = kit.client.validForm(owner);
      const right = valid.find(([key]) => key === name)![1];
      const form = replaced(valid, name, value);
      const guess = (label: string): Promise<Exchange> =>
        sendForm(kit, id, form, refusedGuess(value, right), label);
      const isToBeKept = done === 0 && name === 'client_secret' && hasPage;
      const token = isToBeKept ? await kit.token(owner) : undefined;
      const mint = (): Promise<Exchange | undefined> => isRefusedOnce(kit, () => kit.client.mint(owner));
      const isLast = done === guesses.length - 1;
      // A server may share the answer to the first of two concurrent requests of a client.
      const isSecond = done === 1 && !isLast;
      const [early, { durationMs }] = await Promise.all([
        isSecond ? mint() : undefined,
        guess(`a wrong ${name}${isSecond ? ', beside the right one' : ''}`),
      ]);
      if (token)
        await kit.checkAll({ id: '5-valid-token', cause: 'after a wrong secret' }, () =>
          refusalOf(kit, token, 'of before a wrong secret', ', after a wrong client_secret'),
        );
      // A server may keep what it compared, whatever the outcome, or mix up two concurrent requests.
      const again = isLast ? guess(`the same wrong ${name} again, beside the right one`) : undefined;
      const [isOdd] = await Promise.all([isSecond ? early : mint(), again]);
      if (isOdd)
        await kit.checkAll({ id: '4.1-success', cause: 'after a wrong secret', needsAgain: true }, () =>
          rightAfterWrong(kit, form, owner),
        );
      // A delay that grows would soon be longer than the timeout.
      const delayMs = durationMs - (kit.client.firstMint?.durationMs ?? 0);
      if (delayMs > LONGEST_DELAY_SHARE * kit.options.timeoutMs) {
        kit.ledger.observe(
          'lockout',
          `answers are delayed after ${kit.client.health.wrongSecrets} wrong secrets`,
        );
        return;
      }
    } catch (error) {
      // The rejections before the lockout are sufficient evidence.
      if (!(error instanceof TargetLocked) || done === 0) throw error;
      kit.ledger.observe('lockout', `after ${kit.client.health.wrongSecrets} wrong secrets`);
      return;
    }
  }
}

/** The refusal of right credentials that were accepted immediately when they were sent again: no lockout ends so soon. */
async function isRefusedOnce(kit: Kit, mint: () => Promise<unknown>): Promise<Exchange | undefined> {
  const before = kit.client.health.refusedOnce;
  await mint();
  return kit.client.health.refusedOnce === before ? undefined : kit.client.health.refusedOnce;
}

async function rightAfterWrong(
  kit: Kit,
  wrong: Form,
  owner: ClientName,
): Promise<MismatchWithEvidence | undefined> {
  await kit.send(kit.client.tokenRequest(wrong));
  const exchange = await isRefusedOnce(kit, () => kit.client.mint(owner));
  return (
    exchange && { ...differs('200 for right credentials after wrong ones', sayToken(exchange)), exchange }
  );
}
