/**
 * What follows from what by the nature of the requirements: where a server does the one wrong, it can hardly do the
 * other right. Read from the specification, not learned from runs.
 */
import { HAPPENED, SAME_ANSWER, WANTED, type Evidence } from './features.ts';

interface Consequence {
  readonly cause: string;
  /** What the cause has to be broken in: its own probes, and not what is only seen on the way. */
  readonly said?: readonly RegExp[];
  readonly follow: RegExp;
  /** What does not follow. */
  readonly but?: RegExp;
  /** Only where one answer breaks both. */
  readonly inOneAnswer?: true;
}

const ITEM = /^item # at TIME$/;
const NOT_ITEM = /^not item # at TIME$/;

const CONSEQUENCES: readonly Consequence[] = [
  // What is another answer each time breaks whatever is asked of one answer.
  { cause: '4.2-repeatable', follow: /^(2\.4|4\.2)-/ },
  { cause: '9-prefix', follow: /^4\.2-r6-next-target$/ },
  // A window that begins too late loses items however its edges are spelt, and one that ends too late gains some.
  {
    cause: '4.2-from-inclusive',
    said: [ITEM],
    follow: /^4\.2-(fractions|offsets|lowercase|window)$/,
    but: NOT_ITEM,
  },
  {
    cause: '4.2-to-exclusive',
    said: [/^no item at or after/],
    follow: /^4\.2-(fractions|offsets|r1-.*|window)$/,
    but: ITEM,
  },
  // An offset that is misread moves both edges, and a fraction errs both ways.
  { cause: '4.2-offsets', said: [ITEM], follow: /^4\.2-(from-inclusive|to-exclusive|r1-.*|window)$/ },
  { cause: '4.2-fractions', said: [ITEM, NOT_ITEM], follow: /^4\.2-(from-inclusive|to-exclusive|window)$/ },
  {
    cause: '4.2-r1-zero-width',
    follow: /^4\.2-(to-exclusive|window)$/,
    but: /^(no item at or after|item # )/,
    inOneAnswer: true,
  },
  // No item lies in a window that ends before it begins.
  { cause: '4.2-r2-inverted', follow: /^4\.2-window$/, but: /^(item #|both)/ },
  // Who begins behind a pair wrongly walks wrongly.
  {
    cause: '4.2-from_id',
    said: [/^(# items, number|only items strictly)/],
    follow: /^(4\.2-(r5-.*|window)|2\.4-next)$/,
    but: /^(all # screenings|item # at TIME)/,
  },
  // Who asks for no token looks at none, who takes any string for one takes any token.
  { cause: '5-missing', follow: /^5-(scheme|garbage|tampered|forged|expired|query-token)$/ },
  { cause: '5-garbage', follow: /^5-(tampered|forged|expired)$/ },
  { cause: '5-forbidden-unknown', follow: /^5-forbidden$/ },
];

/** Whether one follows from another that is broken too, and the other not from it. */
export const followsFrom = (id: string, cause: string, evidence: Evidence): boolean =>
  canCause(cause, id, evidence) && !canCause(id, cause, evidence);

function canCause(cause: string, id: string, evidence: Evidence): boolean {
  const [behind, features] = [evidence.get(cause)!, evidence.get(id)!];
  if (id === cause || (isLimited(cause, behind) && !isLimited(id, features))) return false;
  const inOneAnswer = features.has(`${SAME_ANSWER}${cause}`);
  return (
    isRefusedAs(cause, id, evidence) ||
    (inOneAnswer && isOddlyAsked(features) && isOfAnswers(id) && !isOfAnswers(cause)) ||
    CONSEQUENCES.some(
      (one) =>
        one.cause === cause &&
        one.follow.test(id) &&
        (inOneAnswer || !one.inOneAnswer) &&
        (one.said ?? []).every((words) => says(behind, words)) &&
        !(one.but && says(features, one.but)),
    )
  );
}

/**
 * Valid requests that are all refused alike: where they have one particular requirement in common, it is that one;
 * where they have several, it is that valid requests are refused.
 */
function isRefusedAs(cause: string, id: string, evidence: Evidence): boolean {
  const refusal = refusalOfValid(evidence.get('4.2-success') ?? new Set());
  if (!refusal) return false;
  const alike = [...evidence.keys()].filter(
    (other) => other !== '4.2-success' && refusalOfValid(evidence.get(other)!) === refusal,
  );
  return alike.length === 1
    ? id === '4.2-success' && cause === alike[0]
    : cause === '4.2-success' && alike.includes(id);
}

/** How a valid request was refused, where that is all that is broken. */
export function refusalOfValid(features: ReadonlySet<string>): string | undefined {
  const all = [...features];
  const wanted = all.filter((feature) => feature.startsWith(WANTED));
  const answer = all.filter((feature) => /^(answered|code) /.test(feature)).sort();
  return answer.length > 0 && wanted.every((feature) => /: #( without items)?$/.test(feature))
    ? answer.join(', ')
    : undefined;
}

const says = (features: ReadonlySet<string>, words: RegExp): boolean =>
  [...features].some((feature) => feature.startsWith(WANTED) && words.test(feature.slice(WANTED.length)));

/** The circumstances that a requirement is about. */
const OWN: Readonly<Record<string, RegExp>> = {
  '4.2-from_id': /^only with from_id/,
  '4.2-fractions': /^only times of # digits/,
  '4.2-offsets': /^only times (east|west) of UTC/,
  '4.2-r1-zero-width': /^only a window of no width/,
};

/** Broken only in circumstances that it is not about. */
export const isLimited = (id: string, features: ReadonlySet<string>): boolean =>
  [...features].some((feature) => feature.startsWith('only ') && !OWN[id]?.test(feature));

/** What every answer is held against, whatever was asked. */
const isOfAnswers = (id: string): boolean => id.startsWith('2.');

const isOddlyAsked = (features: ReadonlySet<string>): boolean =>
  [...features].some((feature) => feature.startsWith('asked with ') && !HAPPENED.test(feature));

const EDGES: Readonly<Record<string, RegExp>> = {
  '4.2-from-inclusive': ITEM,
  '4.2-to-exclusive': /^no item at or after/,
  '4.2-fractions': /^(not )?item # at TIME$/,
  '4.2-offsets': /^(not )?item # at TIME$/,
};

/** Several edges of a window that are wrong, none because of another: it is the window. */
export function hasSeveralEdgesWrong(evidence: Evidence): boolean {
  if (!evidence.has('4.2-window') || evidence.has('4.2-repeatable')) return false;
  const wrong = Object.entries(EDGES).flatMap(([id, words]) => {
    const features = evidence.get(id);
    return features && !isLimited(id, features) && says(features, words) ? [id] : [];
  });
  return wrong.filter((id) => !wrong.some((other) => followsFrom(id, other, evidence))).length > 1;
}
