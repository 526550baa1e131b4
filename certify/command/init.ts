/** `--init`: writes a target file, as an example with comments to fill in. */
import { writeFile } from 'node:fs/promises';
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

/** A target file may contain comments on lines of their own. */
const example = (schema: string): string => `{
  // The schema describes each member; editors complete from it. Lines that begin with // are comments.
  "$schema": ${JSON.stringify(schema)},
  // Appears on the certificate.
  "name": "Acme screenings 2.3",
  // /v1/tenants/… and /oauth/token are appended to these addresses.
  "baseUrl": "https://api.acme.example/api",
  "authUrl": "https://auth.acme.example",
  "clients": {
    // \${NAME} is taken from the environment: secrets belong there.
    "primary": { "clientId": "acme-1", "clientSecret": "\${SCREENINGS_CLIENT_SECRET}" },
    // Class isolation: a client of another tenant. Remove it if there is none.
    "secondTenant": { "clientId": "acme-2", "clientSecret": "\${SCREENINGS_SECOND_SECRET}" }
  },
  // Class rate-limit: true permits the kit to provoke 429.
  "rateLimit": { "probe": false }
}
`;

/** Returns the next steps as text to print. Throws a UsageError if the file exists. */
export async function init(path: string, shown: string): Promise<string> {
  const content = example(targetSchemaUrl(dirname(path)));
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
