/** Reduces a finding to its minimal failing combination: resets factors one by one while it still fails. */
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import { Untested, wentWrong } from '../../errors.ts';
import { combinedClientOf, FACTORS, type Baseline } from '../combinations/factors.ts';
import type { Finding } from '../state/ledger.ts';

/** Whether the verdict may depend on the content of the page, which another page size changes. */
const dependsOnContent = (id: string): boolean => !/^(2\.4|4\.2-(r6|r7|content)|7\.2|9)/.test(id);

/** Whether the request's token belongs to the tenant in its path; otherwise another rule applies. */
function isOwn(request: RequestOut, baseline: Baseline): boolean {
  const { authorization } = request;
  const of =
    authorization.kind === 'client'
      ? authorization.client
      : authorization.kind === 'header'
        ? authorization.of
        : undefined;
  return of !== undefined && of === combinedClientOf(request, baseline);
}

/** The finding with its minimal failing combination and the reduced request, if one request shows it and it recurs each time. */
export async function withMinimalCombination(
  finding: Finding,
  baseline: Baseline | undefined,
  send: (request: RequestOut) => Promise<Exchange>,
): Promise<Finding> {
  const { exchange, judge, varied, confirmed = '', cause, id } = finding;
  const varies = varied !== undefined || cause === 'observed';
  if (!baseline || !exchange || !judge || !varies || !/^(\d+) of \1$/.test(confirmed)) return finding;
  const { channel, method, offPath } = exchange.request;
  if (channel !== 'rest' || method !== 'GET' || offPath) return finding;
  const fixed = isOwn(exchange.request, baseline) ? [] : ['tenant', 'token'];
  const candidates = FACTORS.filter(
    ({ name }) =>
      !fixed.includes(name) &&
      (varied?.includes(name) ?? (name !== 'window' && !(name === 'page size' && dependsOnContent(id)))),
  );
  try {
    let shown = { exchange, mismatch: finding.mismatch };
    let plain = exchange.request;
    const only: string[] = [];
    for (const { levels, of } of candidates) {
      const level = of?.(plain, baseline);
      const [usual, make] = Object.entries(levels)[0]!;
      if (level === undefined || level === usual) continue;
      const simpler = make(plain, baseline);
      if (JSON.stringify(simpler) === JSON.stringify(plain)) continue;
      const answer = await send(simpler);
      const mismatch = judge(answer);
      if (mismatch) [plain, shown] = [simpler, { exchange: answer, mismatch }];
      else only.push(level);
    }
    return { ...finding, ...shown, only };
  } catch (error) {
    if (error instanceof Untested) return finding;
    return { ...finding, confirmed: `${confirmed}; in which combinations: ${wentWrong(error)}` };
  }
}
