/** The default page size (section 4.2): compares pages without `pageSize` with pages of 100. */
import type { Exchange } from '../../client/exchange.ts';
import { DEFAULT_PAGE_SIZE, pageOf, type PageQuery } from '../../client/page.ts';
import { differs, type Mismatch } from '../../checks/mismatch.ts';
import type { Kit } from '../kit.ts';
import type { PageOptions } from '../page-requests.ts';

/** Reports a different default if answers without pageSize are shorter than those with pageSize=100. */
export async function checkDefaultPageSize(
  kit: Kit,
  query: PageQuery,
  first: Exchange,
  options: PageOptions = {},
): Promise<void> {
  const compare = async (without: Exchange): Promise<Mismatch | undefined> => {
    const held = pageOf(without).items?.length ?? 0;
    if (held >= DEFAULT_PAGE_SIZE || pageOf(without).nextUrl === undefined) return undefined;
    const named = await kit.page({ ...query, pageSize: DEFAULT_PAGE_SIZE }, options);
    const full = pageOf(named).items?.length ?? 0;
    return full >= DEFAULT_PAGE_SIZE
      ? differs(
          `the ${full} items that pageSize=${DEFAULT_PAGE_SIZE} gives, without pageSize too`,
          `${held} items`,
        )
      : undefined;
  };
  kit.ledger.check('4.2-pageSize-default');
  const mismatch = await compare(first);
  if (!mismatch) return;
  // Pages that are limited by time or octets are short occasionally; a different default is short each time.
  const again = async (): Promise<Mismatch | undefined> => compare(await kit.page(query, options));
  for (let i = 0; i < 2; i++) if (!(await again())) return;
  kit.fail({ id: '4.2-pageSize-default', cause: 'default', mismatch, exchange: first, again });
}
