/** `--check-target`: one token and one page, and what a run would exercise. Nothing else is asked. */
import { Untested } from '../engine/errors.ts';
import { whyNoToken } from '../engine/client/token.ts';
import { readToken } from '../engine/client/token.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { pageUrl, SOME_WINDOW } from '../engine/client/page.ts';
import { CLASSES, type RequirementClass } from '../engine/requirements.ts';
import { formatInstant } from '../engine/data/instant.ts';
import { createRedactor } from '../engine/run/evidence/redact.ts';
import { Kit, type KitOptions } from '../engine/run/kit.ts';
import { secretsOf, type Target } from '../engine/target/target.ts';
import { kitOptions } from './certify.ts';
import { visible } from './render/markup.ts';

/** What to supply for each class; undefined where it would be exercised. */
function lackOf({
  clients,
  events,
  rateLimit,
  fault,
  ...target
}: Target): Record<RequirementClass, string | undefined> {
  const names = (['notOnboarded', 'unauthorized', 'invalidGrant'] as const).filter((name) => !clients[name]);
  const { expiredToken, keepToken } = target as Target & { keepToken?: string };
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

/** The lines to print, and whether token and page came. */
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
      const { window } = target;
      const query = window ? { from: formatInstant(window.from), to: formatInstant(window.to) } : SOME_WINDOW;
      const request = kit.request(tenantId, '', { kind: 'client', client: 'primary' });
      const page = await kit.send({
        ...request,
        url: pageUrl(target.baseUrl, tenantId, { ...query, pageSize: 1 }),
      });
      usable = page.status === 200;
      lines.push(
        `page     ${usable ? `of tenant ${tenantId} from ${target.baseUrl}` : `none: ${sayRefusal(page)}; check baseUrl and the tenant`}`,
      );
    }
  } catch (error) {
    if (!(error instanceof Untested)) throw error;
    lines.push(`none: ${error.message}`);
  }
  const lacks = lackOf(target);
  for (const name of CLASSES)
    lines.push(
      `${name.padEnd(13)} ${usable ? (lacks[name] ?? 'would be exercised') : (lacks[name] ?? 'cannot be exercised so')}`,
    );
  const { redact } = createRedactor([...secretsOf(target), ...kit.client.issued]);
  return { lines: lines.map((line) => visible(redact(line))), usable };
}
