/** `--from-har FILE`: judges recorded traffic of any client with the observers only. Sends nothing. */
import { commandLine } from '../engine/called-from.ts';
import { member } from '../engine/client/json.ts';
import { REQUIREMENTS, type RequirementId } from '../engine/requirements.ts';
import { Kit } from '../engine/run/kit.ts';
import { REDACTED, TOKEN } from '../engine/run/evidence/redact.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import type { Target } from '../engine/target/target.ts';
import { buildReport } from './build-report.ts';
import { kitOptions, type CertifyOptions } from './certify.ts';
import type { Recording } from './har.ts';
import type { Report } from './report.ts';

/** Requirements that a recording cannot show: they need the current time, repeated requests, or the octets of bodies. */
const NOT_FROM_RECORDS: ReadonlySet<RequirementId> = new Set<RequirementId>([
  '2.1-expires_in',
  '2.1-expires_in-3600',
  '2.2-iat',
  '2.2-iss',
  '7.2-no-unprovoked-5xx',
]);

/** Recorders often remove tokens; a removed token cannot be judged. */
const isRedacted = ({ json }: Exchange): boolean => {
  const token = member(json, 'access_token');
  return typeof token === 'string' && (token.includes(TOKEN) || token.includes(REDACTED) || token === '');
};

/** A target with nothing but its addresses. */
export const targetOfRecording = ({ baseUrl, authUrl }: Recording, name?: string): Target => ({
  name: name ?? `recorded traffic with ${baseUrl}`,
  baseUrl,
  authUrl,
  clients: { primary: { clientId: '', clientSecret: '' } },
  trustedOrigins: [],
  headers: {},
});

export async function judgeRecording(
  { exchanges }: Recording,
  target: Target,
  options: CertifyOptions,
): Promise<Report> {
  await using kit = new Kit(target, kitOptions(options));
  const began = performance.now();
  const judged = exchanges.filter((exchange) => exchange.request.channel === 'rest' || !isRedacted(exchange));
  for (const exchange of judged) kit.judgeRecorded(exchange, NOT_FROM_RECORDS);
  const seen = REQUIREMENTS.map(({ id }) => id).filter((id) => kit.ledger.checks.has(id));
  kit.ledger.end({ title: 'recorded traffic', ids: seen, state: 'done', isSupplement: false });
  kit.ledger.end({
    title: 'what recorded traffic does not show',
    ids: REQUIREMENTS.map(({ id }) => id).filter((id) => !seen.includes(id)),
    state: 'untested',
    reason: 'recorded traffic does not show it; certify the target itself',
    isSupplement: false,
  });
  const first = Math.min(...exchanges.map(({ startedAtMs }) => startedAtMs), Date.now());
  const report = buildReport(kit, {
    startedAt: new Date(first),
    durationMs: performance.now() - began,
    planned: 1,
    selection: options.only,
    required: options.require ?? [],
    basis: {},
    replay: options.replay ?? commandLine('certify'),
  });
  return { ...report, requests: 0, evidence: { ...report.evidence, executed: 1 } };
}
