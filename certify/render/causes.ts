/** Failures grouped by cause: the root with its evidence, its consequences, and mistakes that may break it. */
import { commandLine } from '../../engine/called-from.ts';
import type { Diagnosis, Report } from '../report.ts';
import { messageLines, withoutEmpty, words, type Cause } from './results.ts';

/** The number of causes described in full; the others are only named. */
const IN_FULL = 3;

export const causesOf = (report: Report): readonly Cause[] =>
  report.diagnosis.map((diagnosis, index) => causeOf(report, diagnosis, index < IN_FULL));

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
    { label: 'sent', texts: [full ? (failure?.request ?? '') : ''], kind: 'exchange' },
    ...(failure && full ? messageLines(failure) : []),
    words('also breaks', findings.slice(1).join(' ')),
    words('probably', likest ? `“${likest.name}”` : ''),
    words('or', ...(full ? others.map(({ name }) => `“${name}”`) : [])),
    ...(likest && full
      ? [
          words('why', likest.why),
          words('fix', fix),
          { label: 'right', texts: right, kind: 'exchange' } as const,
          { label: 'explain', texts: [explainCommand(likest.name)], kind: 'command' } as const,
        ]
      : [words('look at', ...(result?.lookAt.slice(0, full ? 3 : 1) ?? []))]),
  ]);
  return { root, title: result?.title ?? '', lines };
}

const explainCommand = (name: string): string =>
  commandLine('certify', `--explain '${name.replaceAll("'", `'\\''`)}'`);
