/** The modes that do not certify: `--check-target`, `--list`, `--explain NAME` and `--init`. */
import { Untested, UsageError } from '../engine/errors.ts';
import { readToken, whyNoToken } from '../engine/client/token.ts';
import { sameBase } from '../engine/checks/token.ts';
import { member } from '../engine/client/json.ts';
import { compareInstants, formatInstant, instant, shift } from '../engine/data/instant.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { pageOf, pageUrl, SOME_WINDOW, type Item } from '../engine/client/page.ts';
import { CLASSES, type RequirementClass, REQUIREMENTS, type Requirement } from '../engine/requirements.ts';
import { createRedactor } from '../engine/run/evidence/redact.ts';
import { Kit } from '../engine/run/kit.ts';
import type { KitOptions } from '../engine/run/state/context.ts';
import { secretsOf, type Target } from '../engine/target/target.ts';
import { kitOptions } from './certify.ts';
import { visible } from './render/markup.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { PACKAGE_FOLDER, commandLine } from '../engine/package.ts';
import { noSuch } from '../engine/target/usage.ts';
import { PROPERTIES } from '../properties/all.ts';
import { SPECS } from '../specs/all.ts';
import { MISTAKES } from './diagnosis/mistakes/all.ts';
import { sectionTitle, wrap } from './render/results.ts';
import { dirname, join, relative } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';

// -- --check-target compares a token and a few pages with the target file ------------------------

function missingSupplies({
  clients,
  events,
  rateLimit,
  fault,
  notApplicable = {},
  expiredToken,
  keepToken,
}: Target): Record<RequirementClass, string | undefined> {
  const names = (['notOnboarded', 'unauthorized', 'invalidGrant'] as const).filter(
    (name) => !clients[name] && !notApplicable[name],
  );
  return {
    core: undefined,
    isolation: clients.secondTenant ? undefined : 'supply clients.secondTenant',
    provisioning:
      names.length > 0 ? `supply ${names.map((name) => `clients.${name}`).join(', ')}` : undefined,
    expiry: (expiredToken ?? keepToken) ? undefined : 'supply expiredToken or keepToken',
    'rate-limit': rateLimit ? undefined : 'supply rateLimit.probe',
    failure: fault ? undefined : 'supply fault.start and fault.stop',
    events: events ? undefined : 'supply events',
  };
}

/** Limits of the traversal: small pages, so that a `next` appears, and their maximum number. */
const PAGES = 40;
const PAGE_SIZE = 100;

/** Fetches the first pages of the window, or of the range of the dataset. */
async function firstPages(kit: Kit, tenantId: string): Promise<{ pages: Exchange[]; hasEnd: boolean }> {
  const { target } = kit;
  const { from, to } = target.window ?? spanOf(target.dataset) ?? SOME;
  const query = { from: formatInstant(from), to: formatInstant(to), pageSize: PAGE_SIZE };
  const first = kit.request(tenantId, '', { kind: 'client', client: 'primary' });
  const pages: Exchange[] = [];
  let url: string | undefined = pageUrl(target.baseUrl, tenantId, query);
  while (url !== undefined && pages.length < PAGES) {
    const page: Exchange = await kit.send({ ...first, url });
    pages.push(page);
    // The token must not be sent to another origin.
    const next: string | undefined = page.status === 200 ? pageOf(page).nextUrl : undefined;
    url = next?.startsWith(`${new URL(target.baseUrl).origin}/`) ? next : undefined;
    if (next === undefined) return { pages, hasEnd: page.status === 200 };
  }
  return { pages, hasEnd: false };
}

const SOME = { from: instant(SOME_WINDOW.from), to: instant(SOME_WINDOW.to) };

function spanOf(dataset: Target['dataset']): Target['window'] {
  if (!dataset?.length) return undefined;
  const times = dataset.map(({ testTime }) => instant(testTime)).sort(compareInstants);
  return { from: times[0]!, to: shift(times.at(-1)!, 1_000_000n) };
}

/** Contradictions between the target file and the answers, each with possible causes. */
function contradictions(
  { baseUrl, authUrl, issuer, trustedOrigins, window, dataset, secondDataset }: Target,
  iss: unknown,
  pages: readonly Exchange[],
  hasEnd: boolean,
): string[] {
  const wrongIssuer = typeof iss === 'string' && !sameBase(iss, issuer ?? authUrl);
  const next = pages.map((page) => pageOf(page).nextUrl).find((url) => url !== undefined);
  const origin = next === undefined ? undefined : new URL(next).origin;
  const isElsewhere =
    next !== undefined && !next.startsWith(`${baseUrl}/v1/`) && !trustedOrigins.includes(origin!);
  const shared = idsInBoth(dataset, secondDataset);
  return [
    ...(wrongIssuer
      ? [
          `iss of the token is ${iss}, not ${issuer ? 'issuer' : 'authUrl'}: one of them is wrong, or name it as issuer`,
        ]
      : []),
    ...(isElsewhere
      ? [
          `next is ${next.split('?')[0]}, not under baseUrl: a proxy that does not pass Host and path on, or another baseUrl`,
        ]
      : []),
    ...countMismatch(pages, hasEnd, window, dataset),
    ...(shared > 0
      ? [
          `${shared} ids occur in both dataset and secondDataset: if id is a primary key, the second ingest drops or replaces them`,
        ]
      : []),
  ];
}

/** Compares the number of screenings in pages and dataset, as far as the pages go; empty if equal. */
function countMismatch(
  pages: readonly Exchange[],
  hasEnd: boolean,
  window: Target['window'],
  dataset: Target['dataset'],
): string[] {
  const items: readonly Item[] = pages.flatMap((page) => pageOf(page).items ?? []);
  const end = hasEnd ? undefined : items.at(-1)?.at;
  if (!dataset || pages[0]?.status !== 200 || (!hasEnd && !end)) return [];
  const isWithin = (testTime: string): boolean => {
    const at = instant(testTime);
    if (window && (compareInstants(at, window.from) < 0 || compareInstants(at, window.to) >= 0)) return false;
    return !end || compareInstants(at, end) < 0;
  };
  const held = dataset.filter(({ testTime }) => isWithin(testTime)).length;
  const came = items.filter(({ at }) => at && (!end || compareInstants(at, end) < 0)).length;
  return held === came
    ? []
    : [
        `the pages hold ${came} screenings, the dataset ${held}: export it again from the tenant, or check what the ingest dropped`,
      ];
}

function idsInBoth(one: Target['dataset'] = [], other: Target['dataset'] = []): number {
  const ids = new Set(one.map(({ id }) => id));
  return other.filter(({ id }) => ids.has(id)).length;
}

/** Returns the lines to print, and whether a token and a page were received. */
export async function checkTarget(
  target: Target,
  options: Partial<KitOptions>,
): Promise<{ readonly lines: readonly string[]; readonly usable: boolean }> {
  await using kit = new Kit(target, kitOptions(options));
  const lines: string[] = [];
  let usable = false;
  try {
    const minted = await kit.client.mint();
    const token = readToken(minted);
    lines.push(
      `token    ${token ? `from ${target.authUrl}` : `none: ${whyNoToken(minted)}; check authUrl, clientId and clientSecret`}`,
    );
    if (token) {
      const tenantId = await kit.tenantOf();
      const { pages, hasEnd } = await firstPages(kit, tenantId);
      const page = pages[0]!;
      usable = page.status === 200;
      lines.push(
        `page     ${usable ? `of tenant ${tenantId} from ${target.baseUrl}` : `none: ${sayRefusal(page)}; check baseUrl and the tenant`}`,
        ...contradictions(target, member(token.claims, 'iss'), pages, hasEnd).map(
          (line) => `but      ${line}`,
        ),
      );
    }
  } catch (error) {
    if (!(error instanceof Untested)) throw error;
    lines.push(`none: ${error.message}`);
  }
  const lacks = missingSupplies(target);
  for (const name of CLASSES)
    lines.push(
      `${name.padEnd(13)} ${usable ? (lacks[name] ?? 'would be exercised') : (lacks[name] ?? 'cannot be exercised without a page')}`,
    );
  const { redact } = createRedactor([...secretsOf(target), ...kit.client.issued]);
  return { lines: lines.map((line) => visible(redact(line))), usable };
}

// -- --list and --explain NAME ---------------------------------------------------------------------

export function list(): string {
  const width = Math.max(...REQUIREMENTS.map(({ id }) => id.length));
  const lines = REQUIREMENTS.flatMap(({ id, section, level, class: needs, title }, index) => [
    ...(REQUIREMENTS[index - 1]?.section === section
      ? []
      : [`${index > 0 ? '\n' : ''}${section} ${sectionTitle(section)}`]),
    `  ${id.padEnd(width)}  ${level.padEnd(6)}  ${needs.padEnd(12)}  ${title}`,
  ]);
  return `${lines.join('\n')}\n`;
}

const NEEDS: Readonly<Record<Requirement['class'], string>> = {
  core: 'one pair of credentials, and a window that holds screenings',
  isolation: 'clients.secondTenant: credentials of a second onboarded tenant',
  provisioning:
    'clients.notOnboarded, clients.unauthorized, clients.invalidGrant: clients provisioned for one error each',
  expiry: 'an expired token: expiredToken, or keepToken of an earlier run',
  'rate-limit': 'rateLimit.probe: permission to provoke 429',
  failure: 'fault.start and fault.stop: commands that break and repair the server',
  events: "events: a capture of primary's event queue",
};

/**
 * Describes a requirement (title, class, tests, where to look) or a known kind of mistake (what it is, why it
 * happens, how to fix it). Throws a UsageError.
 */
export function explain(name: string, columns = 80): string {
  const mistake = MISTAKES.find((one) => one.name === name);
  if (mistake) return explainMistake(mistake, columns);
  const found = REQUIREMENTS.find((requirement) => requirement.id === name);
  if (!found) {
    const known = [...REQUIREMENTS.map(({ id }) => id), ...MISTAKES.map((one) => one.name)];
    throw noSuch('--explain', 'requirement and no known mistake', name, known);
  }
  const tried = [...SPECS, ...PROPERTIES]
    .filter(({ ids }) => ids.includes(found.id))
    .map(({ title }) => title);
  const part = partOf(columns);
  return [
    `${found.id}  ${found.level}  §${found.section} ${sectionTitle(found.section)}`,
    ...part('holds', [found.title]),
    ...part('class', [`${found.class}: needs ${NEEDS[found.class]}`]),
    ...part('tried by', tried),
    ...part('look at', found.lookAt),
    ...part('run', [commandLine('certify', `--only ${found.id}`)]),
    '',
  ].join('\n');
}

const partOf =
  (columns: number) =>
  (label: string, texts: readonly string[]): string[] =>
    texts
      .flatMap((text) => wrap(text, Math.min(110, columns) - 12))
      .map((line, index) => `  ${(index ? '' : label).padEnd(10)}${line}`);

function explainMistake(
  { name, why, fix, right, breaks }: (typeof MISTAKES)[number],
  columns: number,
): string {
  const part = partOf(columns);
  return [
    name,
    ...part('why', [why]),
    ...part('fix', [fix]),
    ...right.split('\n').map((line, index) => `  ${(index ? '' : 'right').padEnd(10)}${line}`),
    ...part('breaks', [breaks]),
    '',
  ].join('\n');
}

// -- --init ----------------------------------------------------------------------------------------

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
