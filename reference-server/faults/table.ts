/** Writes README.md: which faults there are, and which requirement each must trip. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import { FAULTS, THEMES } from './all.ts';
import { tripped } from './fault.ts';
import { WITHOUT_FAULT } from './without.ts';

export const TABLE = fileURLToPath(new URL('README.md', import.meta.url));

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** The text of README.md. */
export async function table(): Promise<string> {
  const lines = [
    '# Faults',
    '',
    'Mistakes put into the reference server, one at a time, and the requirements that must fail for it (a SHOULD warns). ' +
      '"bare" marks the ones that show without a dataset and with one pair of credentials alone. ' +
      'This file is written by `npx tsx reference-server/faults/table.ts`.',
    '',
    `${FAULTS.length} faults in ${Object.keys(THEMES).length} themes.`,
    '',
    '## By requirement',
    '',
    '| requirement | level | faults |',
    '|---|---|---|',
    ...REQUIREMENTS.map(({ id, level }) => {
      const names = FAULTS.filter((fault) => tripped(fault).includes(id)).map(({ name }) => cell(name));
      return `| ${id} | ${level} | ${names.join('; ') || `none: ${cell(WITHOUT_FAULT[id] ?? '')}`} |`;
    }),
  ];
  for (const [theme, faults] of Object.entries(THEMES)) {
    lines.push(
      '',
      `## ${theme[0]!.toUpperCase()}${theme.slice(1)}`,
      '',
      '| fault | trips | bare |',
      '|---|---|---|',
    );
    for (const fault of faults)
      lines.push(`| ${cell(fault.name)} | ${tripped(fault).join(', ')} | ${fault.bare ? 'yes' : ''} |`);
  }
  return format(`${lines.join('\n')}\n`, { parser: 'markdown' });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(TABLE, await table());
