/** Rules that are judged over all situations. */
import { createRedactor, REDACTED, type Redactor } from '../../../engine/run/evidence/redact.ts';
import { line } from '../record.ts';
import type { ClientFailure, SituationResult } from '../report.ts';
import { finding, type Play } from '../situation.ts';
import type { Judged } from './play.ts';

export interface Played {
  readonly name: string;
  readonly play: Play;
  readonly judged: Judged;
}

type Sentence = Pick<SituationResult, 'name' | 'section' | 'level' | 'title' | 'lookAt'> & {
  readonly judge: (played: readonly Played[]) => readonly ClientFailure[];
};

/** The secret, and opaque tokens, which the redactor does not recognize by itself. */
export const secretsOf = ({ given, tokens }: Play): readonly string[] => [
  given.clientSecret,
  ...tokens.filter((token) => !token.includes('.')).slice(0, 20),
];

const inSituation = ({ name }: Played, failure: ClientFailure): ClientFailure => {
  const { message, received, ...rest } = failure;
  const where = ` (in ${name})`;
  return { ...rest, message: message + where, received: received + where };
};

const SENTENCES: readonly Sentence[] = [
  {
    name: 'nothing-partial-as-whole',
    section: '4.2',
    level: 'MUST',
    title: 'wherever the window can’t be collected whole, the client says so: its exit status is not 0',
    lookAt: ['errors that end the loop: they end the client with a status other than 0'],
    judge: (played) =>
      played.flatMap((one) =>
        one.judged.graver.soldAsWhole ? [inSituation(one, one.judged.graver.soldAsWhole)] : [],
      ),
  },
  {
    name: 'comes-to-an-end',
    section: '7.2',
    level: 'MUST',
    title:
      'whatever the server does, the client comes to an end by itself, after a bounded number of requests',
    lookAt: ['every loop around a request: it counts its tries'],
    judge: (played) =>
      played.flatMap((one) =>
        one.judged.graver.endless ? [inSituation(one, one.judged.graver.endless)] : [],
      ),
  },
  {
    name: 'secret-kept',
    section: '4.1',
    level: 'MUST',
    title:
      'the client_secret goes to the token endpoint alone, in the body: it stands in no URL and in nothing printed',
    lookAt: [
      'what is logged of a request or an error',
      'where the credentials are put: the form, not the query',
    ],
    judge: (played) => {
      const { redact } = createRedactor(played.map(({ play }) => play.given.clientSecret));
      const holds = (text: string): boolean => redact(text).includes(REDACTED);
      return played.flatMap((one) => leaks(one.play, holds).map((leak) => inSituation(one, leak)));
    },
  },
];

function leaks({ requests, ended, tokens }: Play, holds: (text: string) => boolean): ClientFailure[] {
  const found: ClientFailure[] = [];
  const inUrl = requests.find(({ request }) => holds(request.path));
  if (inUrl) found.push(finding('no secret in a URL', 'the client_secret in one', [line(inUrl)]));
  const toApi = requests.find(
    ({ channel, request }) =>
      channel === 'pages' && holds(`${request.body.toString()} ${Object.values(request.headers).join(' ')}`),
  );
  if (toApi) {
    found.push(
      finding('the secret to stay with the token endpoint', 'it in a request for a page', [line(toApi)]),
    );
  }
  for (const [where, text] of [
    ['standard output', ended.stdout ?? ''],
    ['standard error', ended.stderr],
  ] as const) {
    if (holds(text)) found.push(finding(`no secret on ${where}`, 'the client_secret there'));
    if (tokens.some((token) => text.includes(token)))
      found.push(finding(`no token on ${where}`, 'an access token there', [], 'SHOULD'));
  }
  return found;
}

/** The results of these rules; untested if there was no request at all. */
export function throughout(played: readonly Played[], { redactDeep }: Redactor): SituationResult[] {
  return SENTENCES.map(({ judge, ...sentence }) => {
    const failures = redactDeep(unique(judge(played)), 'fixed');
    const levels = failures.map(({ level }) => level ?? sentence.level);
    const status = levels.includes('MUST') ? 'fail' : levels.length > 0 ? 'warn' : 'pass';
    return played.every(({ play }) => play.requests.length === 0)
      ? { ...sentence, status: 'untested', reason: 'no request was seen', failures: [], durationMs: 0 }
      : { ...sentence, status, failures, durationMs: 0 };
  });
}

/** Reports the same leak only once. */
function unique(failures: readonly ClientFailure[]): ClientFailure[] {
  const seen = new Set<string>();
  return failures.filter(({ message }) => {
    const kind = message.replace(/ \(in [^)]*\)$/, '');
    return !seen.has(kind) && seen.add(kind);
  });
}
