/** Section 2.4: the page. */
import { about, test } from '../fixtures/test.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { pageOf } from '../engine/client/page.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { differs } from '../engine/checks/mismatch.ts';
import { repeatMismatch } from '../engine/run/walk/snapshot.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import { pagesOfEverySize, walksOfSeveralPages } from '../engine/run/walk/standard-walks.ts';

/** Of the largest page size almost; no other check requests it, so that no cache holds the page. */
const COMPRESSED_SIZE = 997;

test(
  'pages of several sizes have items and links',
  about(['2.4-items', '2.4-links', '2.4-next-absent', '2.4-utf8'], { access: 'reads' }),
  ({ kit }) => pagesOfEverySize(kit),
);

test(
  'next leads from page to page until the last',
  about(['2.4-next', '2.4-next-absolute', '2.4-next-no-empty-page', '2.4-full-pages'], { access: 'reads' }),
  ({ kit }) => walksOfSeveralPages(kit),
);

test(
  'a compressed page holds what the plain one holds',
  about(['4.2-repeatable', '2.4-items'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const { window } = await sampleDataOf(kit);
    // Beyond the buffer of a compressor. Compressed first: a cache may serve that to clients that accept no gzip.
    const query = { ...window, pageSize: Math.min(COMPRESSED_SIZE, kit.knowledge.pageSize) };
    await kit.checkAll({ id: '4.2-repeatable', cause: 'compressed', needsAgain: true }, async () => {
      const request = kit.request(await kit.tenantOf(), query);
      const compressed: [coding: string, page: Exchange][] = [];
      for (const coding of ['br', 'gzip']) {
        const headers = { ...request.headers, 'accept-encoding': coding };
        compressed.push([coding, await kit.send({ ...request, headers })]);
      }
      const plain = await kit.page(query);
      for (const [coding, exchange] of compressed) {
        if (exchange.status !== 200 || !Array.isArray(pageOf(exchange).items))
          return {
            ...differs(
              `the same page for Accept-Encoding: ${coding}`,
              exchange.encoding === 'UTF-8' ? sayRefusal(exchange) : `${exchange.encoding}`,
            ),
            exchange,
          };
        const mismatch = await repeatMismatch(kit, exchange, plain);
        if (mismatch) return mismatch;
      }
      return undefined;
    });
  },
);
