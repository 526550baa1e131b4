/** Which circumstances a finding needs: made usual one by one, it is gone. */
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import { Untested } from '../../errors.ts';
import { CIRCUMSTANCES, type Ground } from '../combinations/circumstances.ts';
import { wentWrong } from './confirmation.ts';
import type { Finding } from '../state/ledger.ts';

/** What a page holds depends on its size and its window by right. */
const onContent = (id: string): boolean => !/^(2\.4|4\.2-(r6|r7|content)|7\.2|9)/.test(id);

/** The finding with the circumstances that it needs and the request that has no others, where one request shows it and it comes back each time. */
export async function withCircumstances(
  finding: Finding,
  ground: Ground | undefined,
  send: (request: RequestOut) => Promise<Exchange>,
): Promise<Finding> {
  const { exchange, judge, varied, confirmed = '', cause, id } = finding;
  const varies = varied !== undefined || cause === 'observed';
  if (!ground || !exchange || !judge || !varies || !/^(\d+) of \1$/.test(confirmed)) return finding;
  const { channel, method, offPath } = exchange.request;
  if (channel !== 'rest' || method !== 'GET' || offPath) return finding;
  const looked = CIRCUMSTANCES.filter(
    ({ name }) => varied?.includes(name) ?? (name !== 'window' && !(name === 'page size' && onContent(id))),
  );
  try {
    let shown = { exchange, mismatch: finding.mismatch };
    const only = await neededOf(looked, exchange.request, ground, async (simpler) => {
      const answer = await send(simpler);
      const mismatch = judge(answer);
      if (mismatch) shown = { exchange: answer, mismatch };
      return mismatch !== undefined;
    });
    return { ...finding, ...shown, only };
  } catch (error) {
    if (error instanceof Untested) return finding;
    return { ...finding, confirmed: `${confirmed}; in which circumstances: ${wentWrong(error)}` };
  }
}

async function neededOf(
  circumstances: typeof CIRCUMSTANCES,
  request: RequestOut,
  ground: Ground,
  isStill: (simpler: RequestOut) => Promise<boolean>,
): Promise<string[]> {
  const needed: string[] = [];
  let plain = request;
  for (const { levels, of } of circumstances) {
    const level = of?.(plain, ground);
    const [usual, make] = Object.entries(levels)[0]!;
    if (level === undefined || level === usual) continue;
    const simpler = make(plain, ground);
    if (JSON.stringify(simpler) === JSON.stringify(plain)) continue;
    if (await isStill(simpler)) plain = simpler;
    else needed.push(level);
  }
  return needed;
}
