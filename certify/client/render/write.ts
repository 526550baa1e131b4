/** The files of a client's report. */
import { join } from 'node:path';
import { writeAtomically } from '../../render/write.ts';
import type { ClientReport } from '../report.ts';
import { html } from './html.ts';
import { junit } from './junit.ts';

const FILES: readonly (readonly [name: string, render: (report: ClientReport) => string])[] = [
  ['client.json', (report) => `${JSON.stringify(report, undefined, 2)}\n`],
  ['client.html', html],
  ['client-junit.xml', junit],
];

/** Writes them all into `directory`, which is there. */
export async function writeClientReport(report: ClientReport, directory: string): Promise<void> {
  for (const [name, render] of FILES) await writeAtomically(join(directory, name), render(report));
}
