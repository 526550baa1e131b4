/** The target file: `--init` writes an example, `--check-target` compares it with a token and a few pages. */
import { readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { Untested, unlessUntested } from '../../engine/errors.ts';
import { writeNew } from '../../engine/files.ts';
import { commandLine, PACKAGE_FOLDER } from '../../engine/package.ts';
import { readToken, whyNoToken } from '../../engine/client/token.ts';
import { sameBase } from '../../engine/checks/token.ts';
import type { Exchange } from '../../engine/client/exchange.ts';
import { member } from '../../engine/client/json.ts';
import { pageOf, type Item } from '../../engine/client/page.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  isInside,
  isMovable,
  shift,
  type Instant,
} from '../../engine/data/instant.ts';
import { sayRefusal } from '../../engine/checks/errors.ts';
import { CLASSES, NEEDS, type RequirementClass } from '../../engine/requirements.ts';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { Kit } from '../../engine/run/kit.ts';
import type { KitOptions } from '../../engine/run/state/context.ts';
import { sayNoScreenings, windowsOf } from '../../engine/run/walk/survey.ts';
import { walkOn } from '../../engine/run/walk/walk.ts';
import { secretsOf, type Target } from '../../engine/target/target.ts';
import { kitOptions } from '../certify.ts';
import { visible } from '../render/markup.ts';

/** What to supply for each class; undefined if nothing is missing. */
function missingSupplies(
  { clients, notApplicable = {}, expiredToken, keepToken, rateLimit, fault, events }: Target,
  { waitForExpiry }: Partial<KitOptions>,
): Record<RequirementClass, string | undefined> {
  const absent = (['notOnboarded', 'unauthorized', 'invalidGrant'] as const)
    .filter((name) => !clients[name] && !notApplicable[name])
    .map((name) => `clients.${name}`);
  const unless = (given: unknown, needs: string) => (given ? undefined : `supply ${needs}`);
  return {
    core: undefined,
    isolation: unless(clients.secondTenant, NEEDS.isolation),
    provisioning: unless(absent.length === 0, absent.join(', ')),
    expiry: unless(expiredToken ?? keepToken ?? waitForExpiry, NEEDS.expiry),
    'rate-limit': unless(rateLimit, NEEDS['rate-limit']),
    failure: unless(fault, NEEDS.failure),
    events: unless(events, NEEDS.events),
  };
}

/** Limits of the traversal: small pages, so that a `next` appears, and their maximum number. */
const PAGES = 40;
const PAGES_WITHOUT_DATASET = 3;
const PAGE_SIZE = 100;

/** Fetches the first pages of the window, of the range of the dataset, or of decades. */
async function firstPages(kit: Kit, tenantId: string) {
  const { window, dataset } = kit.target;
  const times = (dataset ?? [])
    .map(({ testTime }) => instant(testTime))
    .filter(isMovable)
    .sort(compareInstants);
  const [from, to] =
    window || times.length === 0
      ? windowsOf(kit).at(-1)!
      : [formatInstant(times[0]!), formatInstant(shift(times.at(-1)!, 1n, 0))];
  const query = { from, to, pageSize: PAGE_SIZE };
  const first = await kit.send(kit.request(tenantId, query));
  if (first.status !== 200) return { pages: [first], hasEnd: false };
  const maxPages = dataset ? PAGES : PAGES_WITHOUT_DATASET;
  const walked = await unlessUntested(walkOn(kit, query, first, { maxPages }));
  return { pages: walked?.exchanges ?? [first], hasEnd: walked?.end === 'complete' };
}

/** Contradictions between the target file and the answers, each with possible causes. */
function contradictions(target: Target, iss: unknown, pages: readonly Exchange[], hasEnd: boolean): string[] {
  const { baseUrl, authUrl, issuer, trustedOrigins, dataset = [], secondDataset = [] } = target;
  const next = pages.map((page) => pageOf(page).nextUrl).find((url) => url !== undefined);
  const isTrusted =
    !next || next.startsWith(`${baseUrl}/v1/`) || trustedOrigins.includes(new URL(next).origin);
  const { held, came } = countsOf(target, pages, hasEnd);
  const ids = new Set(dataset.map(({ id }) => id));
  const shared = secondDataset.filter(({ id }) => ids.has(id)).length;
  return [
    typeof iss === 'string' &&
      !sameBase(iss, issuer ?? authUrl) &&
      `iss of the token is ${iss}, not ${issuer ? 'issuer' : 'authUrl'}: one of them is wrong, or name it as issuer`,
    !isTrusted &&
      `next is ${next.split('?')[0]}, not under baseUrl: a proxy that does not pass Host and path on, or another baseUrl`,
    held !== came &&
      `the pages hold ${came} screenings, the dataset ${held}: export it again from the tenant, or check what the ingest dropped`,
    shared > 0 &&
      `${shared} ids occur in both dataset and secondDataset: if id is a primary key, the second ingest drops or replaces them`,
  ].filter((text) => text !== false);
}

/** The numbers of screenings in dataset and pages, as far as the pages go. */
function countsOf({ window, dataset }: Target, pages: readonly Exchange[], hasEnd: boolean) {
  const items: readonly Item[] = pages.flatMap((page) => pageOf(page).items ?? []);
  const end = hasEnd ? undefined : items.at(-1)?.at;
  if (!dataset || pages[0]?.status !== 200 || (!hasEnd && !end)) return { held: 0, came: 0 };
  const isBeforeEnd = (at: Instant): boolean => !end || compareInstants(at, end) < 0;
  const times = dataset.map(({ testTime }) => instant(testTime));
  return {
    held: times.filter((at) => (!window || isInside(at, window)) && isBeforeEnd(at)).length,
    came: items.filter(({ at }) => at && isBeforeEnd(at)).length,
  };
}

/** Returns the lines to print, and whether a token and a page were received. */
export async function checkTarget(target: Target, options: Partial<KitOptions>) {
  await using kit = new Kit(target, kitOptions(options));
  const lines: string[] = [];
  let usable = false;
  let isEmpty = false;
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
      isEmpty = !target.dataset && pages.every((one) => !pageOf(one).items?.length);
      lines.push(
        `page     ${usable ? `of tenant ${tenantId} from ${target.baseUrl}` : `none: ${sayRefusal(page)}; check baseUrl and the tenant`}`,
        ...contradictions(target, member(token.claims, 'iss'), pages, hasEnd).map(
          (line) => `but      ${line}`,
        ),
      );
    }
  } catch (error) {
    if (!(error instanceof Untested)) throw error;
    lines.push(`${lines.length === 0 ? 'token' : 'page '}    none: ${error.message}`);
  }
  const lacks = {
    ...missingSupplies(target, options),
    ...(usable && isEmpty ? { core: sayNoScreenings(target) } : {}),
  };
  const otherwise = usable ? 'would be exercised' : 'cannot be exercised without a page';
  for (const name of CLASSES) lines.push(`${name.padEnd(13)} ${lacks[name] ?? otherwise}`);
  const { redact } = createRedactor(secretsOf(target), kit.client.issued);
  return { lines: lines.map((line) => visible(redact(line))), usable };
}

// -- --init: an example with comments to fill in ---------------------------------------------------

/** Returns the next steps as text to print. Throws a UsageError if the file exists. */
export async function init(path: string, shown: string): Promise<string> {
  const text = await readFile(new URL('example.target.json', import.meta.url), 'utf8');
  const schema = relative(dirname(path), join(PACKAGE_FOLDER, 'certify/schemas/target.schema.json'));
  const url = schema.replaceAll('\\', '/').replace(/^(?!\.)/, './');
  const content = text.replace(/(?<="\$schema": ).*(?=,)/, () => JSON.stringify(url));
  await writeNew(path, content, 0o600, `--init: ${shown}`);
  const secrets = [...content.matchAll(/: "\$\{(\w+)\}"/g)].map(([, name]) => name);
  return [
    `${shown} written: fill in the addresses and clients, remove what you do not have.`,
    `Set ${secrets.join(' and ')} in the environment, then:`,
    `  ${commandLine('certify', `--target ${shown} --check-target`)}`,
    '',
  ].join('\n');
}
