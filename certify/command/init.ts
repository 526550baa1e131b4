/** `--init`: writes a target file, as an example with comments to fill in. */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { commandLine, PACKAGE_FOLDER } from '../../engine/package.ts';

function targetSchemaUrl(folder: string): string {
  const path = relative(folder, join(PACKAGE_FOLDER, 'certify/schemas/target.schema.json')).replaceAll(
    '\\',
    '/',
  );
  return path.startsWith('.') ? path : `./${path}`;
}

/** Returns the next steps as text to print. Throws a UsageError if the file exists. */
export async function init(path: string, shown: string): Promise<string> {
  const text = await readFile(new URL('example.target.json', import.meta.url), 'utf8');
  const content = text.replace(/(?<="\$schema": ).*(?=,)/, () =>
    JSON.stringify(targetSchemaUrl(dirname(path))),
  );
  await writeFile(path, content, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST'
        ? `--init: ${shown} already exists and was not changed`
        : `--init: can't write ${shown} (${error.code ?? error.message})`,
    );
  });
  const secrets = [...content.matchAll(/: "\$\{(\w+)\}"/g)].map(([, name]) => name);
  return [
    `${shown} written: fill in the addresses and clients, remove what you do not have.`,
    `Set ${secrets.join(' and ')} in the environment, then:`,
    `  ${commandLine('certify', `--target ${shown} --check-target`)}`,
    '',
  ].join('\n');
}
