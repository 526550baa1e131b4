/** Section 4.2, rules 5 and 6: `next` returns the same page whenever it is requested, and with any valid token. */
import { about, test } from '../fixtures/test.ts';
import type { Authorization, Exchange } from '../engine/client/exchange.ts';
import { readToken } from '../engine/client/token.ts';
import type { MismatchWithEvidence } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { repeatMismatch } from '../engine/run/walk/snapshot.ts';
import { walksOfSeveralPages } from '../engine/run/walk/standard-walks.ts';
import type { Walk } from '../engine/run/walk/walk.ts';
import { tokenHeader } from '../engine/run/observers/valid-token.ts';
import { Untested } from '../engine/errors.ts';

const PAGES_AT_MOST = 6;

/** Pages reached through `next`: with several page sizes, some near the start of their traversal and some deep in it. */
const pagesOfNext = (kit: Kit): Promise<readonly Exchange[]> =>
  kit.once('pages of next', async () => {
    const walks = (await walksOfSeveralPages(kit)).filter(({ exchanges }) => exchanges.length > 2);
    const bySize = new Map(walks.map((walked) => [walked.query.pageSize, walked]));
    const chosen = [...bySize.values()];
    const step = Math.max(1, Math.floor(chosen.length / PAGES_AT_MOST));
    return chosen
      .filter((_, index) => index % step === 0)
      .slice(0, PAGES_AT_MOST)
      .map(({ exchanges }, index) => exchanges[index % 2 === 0 ? 1 : exchanges.length - 2]!)
      .filter(({ request, status }) => status === 200 && request.followed === true);
  });

/** As one law: a server that binds a `next` to a token serves it again once the new token has been on the page before. */
async function checkNextAgain(kit: Kit, cause: string, authorization?: Authorization): Promise<void> {
  const pages = await pagesOfNext(kit);
  const run = async (): Promise<MismatchWithEvidence | undefined> => {
    for (const page of pages) {
      const mismatch = await repeatMismatch(kit, page, await kit.follow(page.request.url, authorization));
      if (mismatch) return mismatch;
    }
    return undefined;
  };
  await kit.checkAll({ id: '4.2-repeatable', cause, needsAgain: true }, run);
}

test(
  'the same page, requested twice concurrently, returns the same items',
  about(['4.2-repeatable', '4.2-r5-exactly-once'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const twice = async (page: Exchange, ask: () => Promise<Exchange>): Promise<void> => {
      await kit.checkAll(
        { id: '4.2-repeatable', cause: 'the same page at the same time', needsAgain: true },
        async () => {
          const both = await Promise.all([ask(), ask()]);
          return (await repeatMismatch(kit, page, both[0])) ?? repeatMismatch(kit, page, both[1]);
        },
      );
    };
    const pages = await pagesOfNext(kit);
    for (const page of pages) await twice(page, () => kit.follow(page.request.url));
    const walks = await walksOfSeveralPages(kit);
    const isPlain = ({ query: { pageSize, fromId } }: Walk): boolean => (pageSize ?? fromId) === undefined;
    const { query, exchanges } = walks.find(isPlain) ?? walks[0]!;
    await twice(exchanges[0]!, () => kit.page(query));
  },
);

test(
  'the same next returns the same items late in the run and with a new token',
  about(['4.2-repeatable', '4.2-r5-exactly-once'], { access: 'reads late', isSupplement: true }),
  async ({ kit }) => {
    await checkNextAgain(kit, 'the same next late');
    const token = readToken(await kit.client.mint());
    if (!token) throw new Untested('the token endpoint issued no second token');
    await checkNextAgain(kit, 'the same next with a new token', tokenHeader(token, 'a new one', 'primary'));
  },
);
