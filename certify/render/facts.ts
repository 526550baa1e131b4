/** Counts, words and order that all report formats share. */
import type { RequirementClass } from '../../engine/requirements.ts';
import { walkPictureText } from './walk-picture.ts';
import type { Failure, Report, RequirementResult, Status, Verdict } from '../report.ts';

/** In the order in which a reader wants them. */
export const STATUSES = ['fail', 'error', 'warn', 'untested', 'pass'] as const satisfies readonly Status[];

/** A status as a word after a number: `3 failed`. */
const STATUS_WORD: Readonly<Record<Status, string>> = {
  pass: 'passed',
  fail: 'failed',
  warn: 'warned',
  untested: 'untested',
  error: 'kit errors',
};

/** `3 failed`, `1 kit error`. */
export const countWord = (status: Status, count: number): string =>
  status === 'error' && count === 1 ? 'kit error' : STATUS_WORD[status];

/** A mark that tells statuses apart without colour. */
export const STATUS_MARK: Readonly<Record<Status, string>> = {
  pass: '✓',
  fail: '✗',
  warn: '!',
  untested: '○',
  error: '?',
};

export const VERDICT_WORD: Readonly<Record<Verdict, string>> = {
  conformant: 'Conformant',
  'non-conformant': 'Non-conformant',
  incomplete: 'Incomplete',
};

/** The status whose colour a verdict is shown in. */
export const VERDICT_STATUS: Readonly<Record<Verdict, Status>> = {
  conformant: 'pass',
  'non-conformant': 'fail',
  incomplete: 'warn',
};

const SECTION_TITLE: Readonly<Record<string, string>> = {
  '1': 'The service',
  '2.1': 'Token response',
  '2.2': 'Access token claims',
  '2.3': 'Screening object',
  '2.4': 'Page of screenings',
  '4.1': 'Token request',
  '4.2': 'Retrieval',
  '5': 'Authentication',
  '6': 'Events',
  '7.1': 'Token errors',
  '7.2': 'REST errors',
  '9': 'Versioning',
};

export type Counts = Readonly<Record<Status, number>>;

export function counts(results: readonly Pick<RequirementResult, 'status'>[]): Counts {
  const counted: Record<Status, number> = { fail: 0, error: 0, warn: 0, untested: 0, pass: 0 };
  for (const { status } of results) counted[status] += 1;
  return counted;
}

/** The selection: all requirements, or those of `--only`. Requirements outside it are not untested. */
export const selected = ({ requirements, selection }: Report): readonly RequirementResult[] =>
  selection
    ? requirements.filter(({ id, section }) => selection.includes(id) || selection.includes(section))
    : requirements;

/** `(of 96 requirements)`, `(12 of 96 requirements selected)`. */
export const selectedText = (report: Report): string =>
  report.selection
    ? `${selected(report).length} of ${report.requirements.length} requirements selected`
    : `of ${report.requirements.length} requirements`;

/** `3 failed, 1 warned, 9 untested, 83 passed`: what is there, in the reader's order. */
export function countsText(results: readonly Pick<RequirementResult, 'status'>[]): string {
  const counted = counts(results);
  const words = STATUSES.filter((status) => counted[status] > 0);
  return (
    words.map((status) => `${counted[status]} ${countWord(status, counted[status])}`).join(', ') ||
    'nothing tested'
  );
}

export const ofStatus = (report: Report, ...statuses: readonly Status[]): readonly RequirementResult[] =>
  selected(report).filter(({ status }) => statuses.includes(status));

export interface Section {
  readonly name: string;
  readonly title: string;
  readonly results: readonly RequirementResult[];
}

export const sectionTitle = (name: string): string => SECTION_TITLE[name] ?? 'Further requirements';

/** The results by section, in the order of the report. */
export function sections(all: readonly RequirementResult[]): readonly Section[] {
  const names = [...new Set(all.map(({ section }) => section))];
  return names.map((name) => ({
    name,
    title: sectionTitle(name),
    results: all.filter(({ section }) => section === name),
  }));
}

/** The status of each requirement class, with counts by status. */
export function classes(report: Report): readonly {
  readonly name: RequirementClass;
  readonly state: 'exercised' | 'partly' | 'untested';
  readonly counts: string;
}[] {
  return (Object.keys(report.classes) as RequirementClass[]).map((name) => ({
    name,
    state: report.classes[name],
    counts: countsText(selected(report).filter((result) => result.class === name)),
  }));
}

/** `exercised: core, isolation; untested: events`. */
export function classesText(report: Report): string {
  const words = (['exercised', 'partly', 'untested'] as const).flatMap((state) => {
    const names = classes(report).filter((entry) => entry.state === state);
    return names.length > 0 ? [`${state}: ${names.map(({ name }) => name).join(', ')}`] : [];
  });
  return words.join('; ');
}

/** The untested requirements by what would make them testable; those that were not asked for are left out. */
export function untestedByReason(
  report: Report,
): readonly { readonly reason: string; readonly ids: readonly string[] }[] {
  const idsByReason = new Map<string, string[]>();
  for (const { id, reason = 'no reason was given' } of ofStatus(report, 'untested')) {
    idsByReason.set(reason, [...(idsByReason.get(reason) ?? []), id]);
  }
  return [...idsByReason].map(([reason, ids]) => ({ reason, ids }));
}

/** The selection that limits the verdict (`--only`). A section that is selected as a whole is named by its number. */
export function selectionText(report: Report): string | undefined {
  const { selection } = report;
  if (!selection) return undefined;
  const whole = sections(report.requirements).filter(({ results }) =>
    results.every(({ id }) => selection.includes(id)),
  );
  const covered = new Set<string>(whole.flatMap(({ results }) => results.map(({ id }) => id)));
  const names = [...whole.map(({ name }) => name), ...selection.filter((id) => !covered.has(id))];
  return `This run was limited to ${names.join(', ')}: the verdict speaks of this selection alone.`;
}

/** Changes since the baseline and among the known failures, one line each. */
export function changesText({
  changes,
  knownFailures = [],
}: Report): readonly (readonly [label: string, text: string])[] {
  const stands = ['expired', 'passes again', 'failing', 'not exercised'] as const;
  const since: readonly (readonly [string, string])[] = changes
    ? [
        ['newly failing', changes.newlyFailing.join(' ') || 'none'],
        ['newly passing', changes.newlyPassing.join(' ') || 'none'],
        ['no longer exercised', changes.noLongerExercised.join(' ') || 'none'],
        ['observed otherwise', changes.changedObservations.join('; ') || 'none'],
        ['compared with', `the run of ${changes.since}${changes.sameTarget ? '' : ', of another target'}`],
      ]
    : [];
  const known = stands.flatMap((stand) => {
    const texts = knownFailures
      .filter((entry) => entry.stand === stand)
      .map(({ id, reason, expires }) => `${id} (until ${expires}): ${reason}`);
    return texts.length > 0 ? [[`known, ${stand}`, texts.join('; ')] as const] : [];
  });
  return [...since, ...known];
}

export const number = (value: number): string => value.toLocaleString('en-US');

/** A name such as `longestWalkPages` in words. */
export const nameInWords = (name: string): string =>
  name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Counts of what the run saw, and of the cases of each property: `pages 971, longest walk pages 350`. */
export const numbersText = (values: Readonly<Record<string, number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${nameInWords(name)} ${number(value)}`)
    .join(', ');

/** How far the run went, in words. */
export function reachText({ coverage: { deepestWalk, widestWindow, largestFullPage } }: Report): string {
  return [
    `deepest walk ${number(deepestWalk)} screenings`,
    `widest window ${widestWindow || 'none'}`,
    `largest full page ${number(largestFullPage)}`,
  ].join(', ');
}

/** Per group of rules, the circumstances that they were not asked in. */
export const notLookedAtTexts = ({ evidence: { notLookedAt } }: Report): string[] =>
  notLookedAt.map(({ rules, circumstances }) => `${circumstances.join('; ')}: ${rules.join('; ')}`);

/** `850 ms`, `12.3 s`, `2 min 5 s`, `1 h 4 min`. */
export function durationText(durationMs: number): string {
  if (durationMs < 1000) return `${Math.round(durationMs)} ms`;
  const seconds = durationMs / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The command that repeats the run for one requirement. */
export function replayCommand(report: Report, id: string): string {
  let command = report.replay.replace(/\s--(?:only|require)[ =]\S+/g, '');
  if (command.startsWith('npm run') && !/\s--(\s|$)/.test(command)) command += ' --';
  if (!/\s--seed[ =]/.test(command)) command += ` --seed ${report.seed}`;
  return `${command} --only ${id}`;
}

/** One labelled piece of evidence; a command is meant to be copied and is never cut or wrapped. */
export interface EvidenceLine {
  readonly label: string;
  readonly texts: readonly string[];
  readonly kind: 'words' | 'exchange' | 'command';
}

const scalar = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : (JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}` : inner)) ??
      String(value));

/** A counterexample as lines to read: a `script` first and as it stands, then whatever else it names but the command. */
export function scriptLines(counterexample: Readonly<Record<string, unknown>>): readonly string[] {
  const { script, walk: _, ...rest } = counterexample;
  const steps = script === undefined ? [] : Array.isArray(script) ? script.map(scalar) : [scalar(script)];
  return [
    ...steps.flatMap((step) => step.split('\n')),
    ...Object.entries(rest).map(([name, value]) => `${name}: ${scalar(value)}`),
  ];
}

/** The two halves that a reader compares; the whole as `found` where nothing was compared. */
export function messageLines({
  message,
  expected,
  received,
}: Pick<Failure, 'message' | 'expected' | 'received'>): readonly EvidenceLine[] {
  if (expected === undefined || received === undefined) {
    return [{ label: 'found', texts: [message], kind: 'words' }];
  }
  return [
    { label: 'expected', texts: [expected], kind: 'words' },
    { label: 'received', texts: [received], kind: 'words' },
  ];
}

/** One failure as labelled lines, in the order in which a reader wants them. */
export function evidence(
  report: Report,
  result: RequirementResult,
  failure: Failure,
): readonly EvidenceLine[] {
  const seen = [
    failure.confirmed,
    failure.count && failure.count > 1 ? `${number(failure.count)} alike` : '',
  ];
  const lines: readonly EvidenceLine[] = [
    { label: 'sent', texts: [failure.request], kind: 'exchange' },
    ...messageLines(failure),
    { label: 'answer', texts: [failure.response], kind: 'exchange' },
    { label: 'given to', texts: [failure.sameAs ?? ''], kind: 'exchange' },
    { label: 'logged as', texts: [failure.requestId ?? ''], kind: 'words' },
    { label: 'only', texts: [(failure.only ?? []).join(', ')], kind: 'words' },
    { label: 'case', texts: scriptLines(failure.counterexample ?? {}), kind: 'words' },
    { label: 'pages', texts: failure.picture ? walkPictureText(failure.picture) : [], kind: 'words' },
    { label: 'seen', texts: [seen.filter(Boolean).join(', ')], kind: 'words' },
    { label: 'look at', texts: result.lookAt, kind: 'words' },
    { label: 'replay', texts: [replayCommand(report, result.id)], kind: 'command' },
    { label: 'curl', texts: [failure.curl], kind: 'command' },
    { label: 'walk', texts: [String(failure.counterexample?.['walk'] ?? '')], kind: 'command' },
  ];
  return lines
    .map((line) => ({ ...line, texts: line.texts.filter((text) => text !== '') }))
    .filter(({ texts }) => texts.length > 0);
}
