/** Sections 2.3, 2.4 and 4.2: pages in pairwise combinations of factors. The observers check every page. */
import { about, test } from '../fixtures/test.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { queryValue, tenantOfPath, type PageQuery } from '../engine/client/page.ts';
import { combinedClientOf, type Baseline } from '../engine/run/combinations/factors.ts';
import { inEveryCombination, levelOf, MOMENTS, titleIn } from '../engine/run/rules/in-combinations.ts';
import type { CombinedRequest, RuleScope } from '../engine/run/rules/in-combinations.ts';
import type { Kit, PageOptions } from '../engine/run/kit.ts';
import { checkDefaultPageSize } from '../engine/run/walk/standard-walks.ts';
import { walkOn } from '../engine/run/walk/walk.ts';

/** Enough to reach the end of the narrow window with pageSize 1, unless it holds a larger tie. */
const PAGES_AT_MOST = 5;

const PAGES: RuleScope = { name: 'pages in pairwise combinations' };

/** A wide window: the default page size shows only if at least 100 items match. */
const DEFAULT: RuleScope = {
  name: 'the default page size in pairwise combinations',
  without: ['window', 'page size'],
};

const queryOf = ({ url }: RequestOut): PageQuery => {
  const [size, id] = ['pageSize', 'from_id'].map((name) => queryValue(url, name));
  return {
    from: queryValue(url, 'from')!,
    to: queryValue(url, 'to')!,
    ...(size === undefined ? {} : { pageSize: Number(size) }),
    ...(id === undefined ? {} : { fromId: BigInt(id) }),
  };
};

const optionsOf = (
  request: RequestOut,
  baseline: Baseline,
  toDialect: CombinedRequest['toDialect'],
): PageOptions => ({
  toDialect,
  client: combinedClientOf(request, baseline)!,
  tenantId: tenantOfPath(request.url)!,
  ...(request.authorization.kind === 'header' ? { authorization: request.authorization } : {}),
});

/** Walks a few pages; if `pageSize` is absent and the first page is full, checks the default page size. */
async function walkThere(kit: Kit, { plain, baseline, toDialect }: CombinedRequest): Promise<void> {
  const options = optionsOf(plain, baseline, toDialect);
  const query = queryOf(plain);
  const first = await kit.ask(query, options);
  if (first.status !== 200) return;
  await walkOn(kit, query, first, { client: options.client!, maxPages: PAGES_AT_MOST });
  if (query.pageSize === undefined) await checkDefaultPageSize(kit, query, first, options);
}

async function askDefault(kit: Kit, { plain, baseline, toDialect }: CombinedRequest): Promise<void> {
  const wide = levelOf('window', 'a window of many years')(plain, baseline);
  const request = levelOf('page size', 'no pageSize')(wide, baseline);
  const options = optionsOf(request, baseline, toDialect);
  const first = await kit.ask(queryOf(request), options);
  if (first.status === 200) await checkDefaultPageSize(kit, queryOf(request), first, options);
}

const REQUIREMENTS_OF_PAGES = [
  '4.2-success',
  '4.2-content-type',
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-from_id',
  '4.2-pageSize-default',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-r6-next-to',
  '4.2-r6-next-pageSize',
  '4.2-r6-next-from',
  '4.2-r6-next-from_id',
  '4.2-r6-next-target',
  '4.2-r7-link',
  '4.2-r7-link-absent',
  '2.3-id',
  '2.3-tenantId',
  '2.3-testTime',
  '2.4-items',
  '2.4-links',
  '2.4-next',
  '2.4-next-absent',
] as const;

for (const moment of MOMENTS) {
  const access = moment === MOMENTS[0] ? 'exclusive' : 'disturbs';
  const right = titleIn(moment, 'every page is right, in pairwise combinations');
  test(right, about(REQUIREMENTS_OF_PAGES, { access, isSupplement: true }), ({ kit }) =>
    inEveryCombination(kit, PAGES, moment, 0, (request) => walkThere(kit, request)),
  );
  test(
    titleIn(moment, 'the default pageSize is 100, in pairwise combinations'),
    about(['4.2-pageSize-default', '4.2-r7-link'], { access, isSupplement: true }),
    ({ kit }) => inEveryCombination(kit, DEFAULT, moment, 0, (request) => askDefault(kit, request)),
  );
}
