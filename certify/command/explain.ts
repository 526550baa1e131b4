/** `--list` prints the requirements; `--explain NAME` one of them, or a kind of mistake. */
import { commandLine } from '../../engine/package.ts';
import { NEEDS, REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import { noSuch } from '../../engine/target/usage.ts';
import { PROPERTIES } from '../../properties/all.ts';
import { SPECS } from '../../specs/all.ts';
import { MISTAKES } from '../diagnosis/mistakes/all.ts';
import { sectionTitle, wrap } from '../render/results.ts';

export function list(only?: readonly RequirementId[]): string {
  const listed = REQUIREMENTS.filter(({ id }) => only?.includes(id) ?? true);
  const width = Math.max(...listed.map(({ id }) => id.length));
  const lines = listed.flatMap(({ id, section, level, class: needs, title }, index) => [
    ...(listed[index - 1]?.section === section
      ? []
      : [`${index > 0 ? '\n' : ''}${section} ${sectionTitle(section)}`]),
    `  ${id.padEnd(width)}  ${level.padEnd(6)}  ${needs.padEnd(12)}  ${title}`,
  ]);
  return `${lines.join('\n')}\n`;
}

/** Describes a requirement or a known kind of mistake. Throws a UsageError. */
export function explain(name: string, columns = 80): string {
  const part = (label: string, lines: readonly string[]): string[] =>
    lines.map((line, index) => `  ${(index ? '' : label).padEnd(10)}${line}`);
  const wrapped = (label: string, ...texts: readonly string[]): string[] =>
    part(
      label,
      texts.flatMap((text) => wrap(text, Math.min(110, columns) - 12)),
    );
  const mistake = MISTAKES.find((one) => one.name === name);
  if (mistake)
    return [
      name,
      ...wrapped('why', mistake.why),
      ...wrapped('fix', mistake.fix),
      ...part('right', mistake.right.split('\n')),
      ...wrapped('breaks', mistake.breaks),
      '',
    ].join('\n');
  const found = REQUIREMENTS.find((requirement) => requirement.id === name);
  if (!found) {
    const known = [...REQUIREMENTS.map(({ id }) => id), ...MISTAKES.map((one) => one.name)];
    const list = '--list prints the requirements, and a report names the mistakes';
    throw noSuch('--explain', 'requirement and no known mistake', name, known, list);
  }
  const tried = [...SPECS, ...PROPERTIES].filter(({ ids }) => ids.includes(found.id));
  return [
    `${found.id}  ${found.level}  §${found.section} ${sectionTitle(found.section)}`,
    ...wrapped('holds', found.title),
    ...wrapped('class', `${found.class}: needs ${NEEDS[found.class]}`),
    ...wrapped('tried by', ...tried.map(({ title }) => title)),
    ...wrapped('look at', ...found.lookAt),
    ...wrapped('run', commandLine('certify', `--only ${found.id}`)),
    '',
  ].join('\n');
}
