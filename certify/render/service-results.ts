/** Converts the report on a service to results. */
import { selectionWords } from '../../engine/requirements.ts';
import type { Report, RequirementResult, Diagnosis } from '../report/report.ts';
import {
  commands,
  countsText,
  limitedTo,
  mismatchLines,
  number,
  withoutEmpty,
  several,
  words,
} from './results.ts';
import type { Entry, Fact, Item, Results, Table, Cause } from './results.ts';
import { walkLines } from './pictures.ts';
import type { Counterexample } from '../../engine/checks/mismatch.ts';
import { commandLine } from '../../engine/package.ts';
import { quote, type Failure } from '../../engine/run/evidence/evidence.ts';

/** The selected requirements, by default all. Requirements outside the selection do not count as untested. */
export const selected = ({ requirements, selection }: Report): readonly RequirementResult[] =>
  requirements.filter(({ id }) => selection?.includes(id) ?? true);

export function resultsOf(report: Report): Results {
  const { target, verdict, summary, kit, startedAt, durationMs, selection, basis } = report;
  return {
    kind: 'conformance report',
    noun: 'requirement',
    title: target.name,
    ...{ verdict, summary, kit, startedAt, durationMs },
    remarks: [
      // The summary of an incomplete run ends with it.
      ...(basis === undefined || summary.includes(basis) ? [] : [['basis', basis] as const]),
      ...(selection ? [['selection', limitedTo(selectionWords(selection))] as const] : []),
    ],
    reach: selection
      ? `${selected(report).length} of ${report.requirements.length} requirements selected`
      : `of ${report.requirements.length} requirements`,
    facts: facts(report),
    items: selected(report).map((result) => itemOf(report, result)),
    causes: report.diagnosis.map((diagnosis, index) => causeOf(report, diagnosis, index < IN_FULL)),
    changes: changesText(report),
    tables: tables(report),
    replay: report.replay,
    tokenCommands: report.tokenCommands,
    files: {
      data: 'report.json',
      html: 'report.html',
      junit: 'junit.xml',
      summary: 'summary.md',
      badge: 'badge.svg',
    },
  };
}

function facts(report: Report): readonly Fact[] {
  const { target, evidence: ran } = report;
  return [
    { label: 'classes', text: classesText(report), only: ['terminal', 'junit'] },
    { label: 'API', text: target.baseUrl, only: ['html', 'summary', 'junit'] },
    { label: 'token endpoint', text: target.authUrl, only: ['html', 'summary', 'junit'] },
    { label: 'requests', text: number(report.requests) },
    { label: 'seed', text: String(report.seed) },
    { label: 'checks', text: `${number(ran.executed)} of ${number(ran.planned)} executed` },
    { label: 'reach', text: reachText(report) },
    { label: 'seen', text: numbersText(ran.seen), only: ['terminal', 'summary'] },
    { label: 'cases by property', text: casesText(ran.laws), only: ['summary'] },
    { label: 'note', text: (report.notes ?? []).join('; ') },
  ];
}

const CLASS_STATUS = { exercised: 'pass', partly: 'warn', untested: 'untested' } as const;

function tables(report: Report): readonly Table[] {
  const { observations, evidence: ran } = report;
  const numbers = (title: string, values: Readonly<Record<string, number>>): Table => ({
    title,
    head: ['', 'Number'],
    rows: Object.entries(values).map(([name, value]) => [nameInWords(name), number(value)]),
  });
  return [
    {
      title: 'Classes exercised',
      head: ['Class', 'State', 'Requirements'],
      rows: Object.entries(report.classes).map(([name, state]) => [
        name,
        [state, CLASS_STATUS[state]],
        countsText(selected(report).filter((result) => result.class === name)),
      ]),
      place: 'first',
    },
    {
      title: 'Where the specification leaves it open',
      about: 'What was seen there; none of it counts for or against the verdict.',
      head: ['Topic', 'Question', 'Seen'],
      rows: observations.map(({ topic, question, seen }) => [
        topic,
        question,
        seen.join(' · ') || 'not seen',
      ]),
    },
    numbers('Seen in the run', ran.seen),
    numbers('Cases by property', ran.laws),
    {
      title: 'Levels of factors, alone or in pairs, in which rules were not tested',
      head: ['Levels', 'Rules'],
      rows: ran.notLookedAt.map(({ rules, circumstances }) => [circumstances.join('; '), rules.join('; ')]),
      place: 'folded',
    },
  ];
}

function itemOf(report: Report, result: RequirementResult): Item {
  const { id, section, level, title, status, failures, reason = '', checks } = result;
  return {
    ...{ id, section, level, title, status, class: result.class },
    durationMs: result.durationMs ?? 0,
    message: failures[0]?.message ?? reason,
    asides: [`class ${result.class}`, `checked on ${several(checks, 'answer')}`],
    blocks:
      failures.length > 0
        ? failures.map((failure, index) => evidence(report, result, failure, index))
        : [
            withoutEmpty([
              words(status === 'error' ? 'kit error' : 'reason', reason),
              commands('replay', replayCommand(report, id)),
            ]),
          ],
  };
}

/** Classes by state: `exercised: core, isolation; untested: events`. */
export function classesText({ classes, declared = [] }: Pick<Report, 'classes' | 'declared'>): string {
  const texts = (['exercised', 'partly', 'untested'] as const).flatMap((state) => {
    const names = Object.entries(classes).filter(([, is]) => is === state);
    return names.length > 0 ? [`${state}: ${names.map(([name]) => name).join(', ')}`] : [];
  });
  return [...texts, ...declared.map(({ id, reason }) => `declared not applicable: ${id}, ${reason}`)].join(
    '; ',
  );
}

/** Changes since the baseline and states of known failures, one line each. */
export function changesText({ changes, knownFailures = [] }: Report): readonly Entry[] {
  const stands = ['expired', 'passes again', 'failing', 'not exercised'] as const;
  const since: readonly Entry[] = changes
    ? [
        ['newly failing', changes.newlyFailing.join(' ') || 'none'],
        ['newly passing', changes.newlyPassing.join(' ') || 'none'],
        ['no longer exercised', changes.noLongerExercised.join(' ') || 'none'],
        ['observed differently', changes.changedObservations.join('; ') || 'none'],
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

const nameInWords = (name: string): string =>
  name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Counters in words: `pages 1,971; longest walk pages 350`. */
const numbersText = (values: Readonly<Record<string, number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${nameInWords(name)} ${number(value)}`)
    .join('; ');

/** Titles of properties contain commas: `10 × two page sizes …`. */
const casesText = (cases: Readonly<Record<string, number>>): string =>
  Object.entries(cases)
    .map(([title, count]) => `${number(count)} × ${title}`)
    .join('; ');

function reachText({ coverage: { deepestWalk, widestWindow, largestFullPage } }: Report): string {
  return [
    `deepest walk ${several(deepestWalk, 'screening')}`,
    `widest window ${widestWindow || 'none'}`,
    `largest full page ${number(largestFullPage)}`,
  ].join(', ');
}

export function replayCommand(report: Report, id: string): string {
  let command = report.replay.replace(/\s--(?:only|require)[ =]\S+/g, '');
  if (command.startsWith('npm run') && !/\s--(\s|$)/.test(command)) command += ' --';
  if (!/\s--seed[ =]/.test(command)) command += ` --seed ${report.seed}`;
  return `${command} --only ${id}`;
}

/** A counterexample as lines: first its script, then all other members except the command. */
const caseLines = ({ script, walk: _, ...rest }: Counterexample): readonly string[] => [
  ...script.flatMap((step) => step.split('\n')),
  ...Object.entries(rest).map(([name, value]) => `${name}: ${value}`),
];

/** A failure as labelled lines, in reading order. Only the first failure has hints and the replay command. */
function evidence(report: Report, { id, lookAt }: RequirementResult, failure: Failure, index = 0) {
  const { request, response, picture, counterexample, count = 1 } = failure;
  const confirmed = [failure.confirmed, count > 1 ? `one of ${number(count)} such findings` : ''];
  return withoutEmpty([
    { label: 'sent', texts: [request], kind: 'verbatim' },
    ...mismatchLines(failure),
    { label: 'answer', texts: [response], kind: 'verbatim' },
    { label: 'given to', texts: [failure.sameAs ?? ''], kind: 'verbatim' },
    words('logged as', failure.requestId ?? ''),
    words('fails', (failure.only ?? []).join(', ')),
    { label: 'case', texts: counterexample ? caseLines(counterexample) : [], kind: 'verbatim' },
    { label: 'pages', texts: picture ? walkLines(picture) : [], kind: 'line' },
    words('confirmed', confirmed.filter(Boolean).join('; ')),
    ...(index === 0 ? [words('look at', ...lookAt), commands('replay', replayCommand(report, id))] : []),
    commands('curl', failure.curl),
    commands('walk', counterexample?.walk ?? ''),
  ]);
}

// -- failures by cause: the root with its evidence, its consequences, and mistakes that may break it ---

/** The number of causes described in full; the others are only named. */
const IN_FULL = 3;

function causeOf(
  { requirements }: Report,
  { root, findings, failure: index = 0, behavesLike }: Diagnosis,
  full: boolean,
): Cause {
  const result = requirements.find(({ id }) => id === root);
  const failure = result?.failures[index];
  const [likest, ...others] = behavesLike;
  const [fix = '', ...right] = likest?.remedy.split('\n') ?? [];
  const lines = withoutEmpty([
    { label: 'sent', texts: [full ? (failure?.request ?? '') : ''], kind: 'verbatim' },
    ...(failure && full ? mismatchLines(failure) : []),
    words('confirmed', failure?.confirmed?.startsWith('flaky') ? failure.confirmed : ''),
    words('also breaks', findings.slice(1).join(' ')),
    words('probably', likest ? `“${likest.name}”` : ''),
    words('or', ...(full ? others.map(({ name }) => `“${name}”`) : [])),
    ...(likest && full
      ? [
          words('why', likest.why),
          words('fix', fix),
          { label: 'right', texts: right, kind: 'verbatim' } as const,
          commands('explain', commandLine('certify', `--explain ${quote(likest.name)}`)),
        ]
      : [words('look at', ...(result?.lookAt.slice(0, full ? 3 : 1) ?? []))]),
  ]);
  return { root, title: result?.title ?? '', lines };
}
