/** `--init`: writes a target file, from answers on a terminal or as an example with comments. */
import { writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline/promises';
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
export async function init(
  path: string,
  shown: string,
  terminal: { readonly input: NodeJS.ReadStream; readonly output: NodeJS.WriteStream },
): Promise<string> {
  const schema = targetSchemaUrl(dirname(path));
  const asked = terminal.input.isTTY && terminal.output.isTTY;
  const content = asked ? `${JSON.stringify(await ask(terminal, schema), null, 2)}\n` : example(schema);
  await writeFile(path, content, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST'
        ? `--init: ${shown} already exists and was not changed`
        : `--init: can't write ${shown} (${error.code ?? error.message})`,
    );
  });
  const secrets = [...content.matchAll(/: "\$\{(\w+)\}"/g)].map(([, name]) => name);
  return [
    `${shown} written${asked ? '' : ': fill in the addresses and clients, remove what you do not have'}.`,
    `Set ${secrets.join(' and ')} in the environment, then:`,
    `  ${commandLine('certify', `--target ${shown} --check-target`)}`,
    '',
  ].join('\n');
}

async function ask({ input, output }: Parameters<typeof init>[2], schema: string): Promise<object> {
  const lines = createInterface({ input, output });
  const question = async (text: string, usual = ''): Promise<string> =>
    (await lines.question(`${text}${usual ? ` [${usual}]` : ''}: `)).trim() || usual;
  try {
    const name = await question('Name, as it appears on the certificate', 'Acme screenings');
    const baseUrl = await question('Address of the REST API, without /v1', 'http://127.0.0.1:8080');
    const authUrl = await question('Address of the token endpoint, without /oauth/token', baseUrl);
    const clientId = await question('Client id');
    const second = await question('Client id of a second tenant (empty: none)');
    return {
      $schema: schema,
      ...{ name, baseUrl, authUrl },
      clients: {
        primary: { clientId, clientSecret: '${SCREENINGS_CLIENT_SECRET}' },
        ...(second
          ? { secondTenant: { clientId: second, clientSecret: '${SCREENINGS_SECOND_SECRET}' } }
          : {}),
      },
    };
  } finally {
    lines.close();
  }
}
