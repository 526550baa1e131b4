/** The state of an earlier run is still valid: its token, its `next` URLs, and the ids of its screenings. */
import { about, test } from '../fixtures/test.ts';
import { endsEmpty, namesTraversal, orderedItems, pageOf, parseQuery } from '../engine/client/page.ts';
import { tokenOfText } from '../engine/client/token.ts';
import { otherClaim } from '../engine/run/rules/expired-tokens.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { differs, type Mismatch } from '../engine/checks/mismatch.ts';
import { isTrusted } from '../engine/checks/next.ts';
import { formatInstant, parseInstant, sameInstant } from '../engine/data/instant.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import type { Kit } from '../engine/run/kit.ts';
import { LATER_MINT, refusalOf } from '../engine/run/observers/valid-token.ts';
import { keep, keptByEarlierRun, type Kept } from '../engine/run/state/kept.ts';
import { sampleDataOf, windowOf } from '../engine/run/walk/survey.ts';

const HOUR_MS = 3_600_000;

test(
  'a token of an earlier run is accepted until its exp',
  about('5-valid-token', { needs: 'page', access: 'disturbs', isSupplement: true }),
  async ({ kit }) => {
    const token = tokenOfText((await keptByEarlierRun(kit)).token);
    if (!token.claims || otherClaim(token.claims, await kit.token()) !== undefined) return;
    // A server that revokes tokens at a later mint is already reported for that.
    const isEnded = kit.ledger.findings.some(
      ({ id, cause }) => id === '5-valid-token' && cause === LATER_MINT,
    );
    if (isEnded) return;
    const { window } = await sampleDataOf(kit);
    const page = await kit.page({ ...window, pageSize: 1 });
    const { nextUrl } = pageOf(page);
    const next = nextUrl && isTrusted(nextUrl, kit.target) ? [await kit.follow(nextUrl)] : [];
    for (const seen of [page, ...next])
      await kit.checkAll({ id: '5-valid-token', cause: 'an earlier run' }, () =>
        refusalOf(kit, token, 'the one of an earlier run', ', issued to an earlier run', seen),
      );
  },
);

test(
  'a next of an earlier run is served, within an hour',
  about('4.2-repeatable', { needs: 'page', access: 'reads late', isSupplement: true }),
  async ({ kit }) => {
    for (const { url, keptAtMs, goesOn } of (await keptByEarlierRun(kit)).nexts) {
      if (!isTrusted(url, kit.target)) continue;
      const ageMs = Date.now() - keptAtMs;
      // Traversal 0: nothing is known about the data at that time.
      const exchange = await kit.send({
        ...kit.requestTo(url),
        followed: true,
        ...(namesTraversal(url) ? { traversalSeq: 0 } : {}),
      });
      if (ageMs >= HOUR_MS) kit.ledger.observe('next-of-earlier-run', sayRefusal(exchange));
      else {
        const asked = parseQuery(url);
        const plain = asked && { ...asked, from: formatInstant(asked.from), to: formatInstant(asked.to) };
        // `next` promised more items, but the screenings may have been deleted since.
        const now = plain && lost(exchange, goesOn) ? pageOf(await kit.page(plain)) : undefined;
        const isThere = { items: (now?.items?.length ?? 0) > 0, next: now?.nextUrl !== undefined };
        kit.check('4.2-repeatable', exchange, servedAgain(ageMs, goesOn, isThere), 'an earlier run');
      }
    }
  },
);

/** What ends the traversal of an old `next` early. */
function lost(exchange: Exchange, goesOn = false): 'items' | 'next' | undefined {
  if (exchange.status !== 200) return undefined;
  if (endsEmpty(exchange)) return 'items';
  return goesOn && pageOf(exchange).nextUrl === undefined ? 'next' : undefined;
}

/** `isThere`: what the same page has now if it is requested without the old `next`. */
const servedAgain =
  (
    ageMs: number,
    goesOn: boolean | undefined,
    isThere: { readonly items: boolean; readonly next: boolean },
  ) =>
  (exchange: Exchange): Mismatch | undefined => {
    const without = lost(exchange, goesOn);
    if (exchange.status === 200 && !(without && isThere[without])) return undefined;
    return differs(
      `200: this next was given ${Math.round(ageMs / 60_000)} minutes ago, before screenings that are still there`,
      without ? `no ${without}` : sayRefusal(exchange),
    );
  };

test(
  'screenings that an earlier run saw keep their ids',
  about('2.3-id-stable', { access: 'reads late', isSupplement: true }),
  async ({ kit }) => {
    const { screenings } = await keptByEarlierRun(kit);
    const wrong: (() => Promise<(Mismatch & { exchange: Exchange }) | undefined>)[] = [];
    let same = 0;
    for (const screening of screenings) {
      const run = (): ReturnType<typeof otherId> => otherId(kit, screening);
      const seen = await run();
      if (seen === 'same') same++;
      else if (seen)
        wrong.push(async () => {
          const again = await run();
          return again === 'same' ? undefined : again;
        });
    }
    // If no screening has kept its id, the tenant may have been reloaded.
    const warning = same === 0;
    for (const run of wrong) {
      const mismatch = await run();
      if (mismatch) {
        const { exchange } = mismatch;
        kit.fail({ id: '2.3-id-stable', cause: 'an earlier run', mismatch, exchange, warning, again: run });
      }
    }
    await leaveForNextRun(kit, warning && wrong.length > 0 ? [] : screenings);
  },
);

/** 'same', or the mismatch with the other id; undefined if the instant has no screening any more, or several. */
async function otherId(
  kit: Kit,
  { id, testTime }: Kept['screenings'][number],
): Promise<'same' | (Mismatch & { exchange: Exchange }) | undefined> {
  const at = parseInstant(testTime);
  if (!at) return undefined;
  const exchange = await kit.page({ ...windowOf([{ at }]), pageSize: 10 });
  const there = orderedItems(exchange).filter((item) => sameInstant(item.at, at));
  if (there.some((item) => String(item.id) === id)) return 'same';
  // The dataset is authoritative: the tenant has been reloaded.
  if (there.length !== 1 || (await kit.oracle()).authoritative) return undefined;
  return {
    ...differs(`id ${id} for the screening at ${testTime}, as an earlier run saw it`, `id ${there[0]!.id}`),
    exchange,
  };
}

const SCREENINGS = 20;

/** The same screenings are kept from run to run, so that slow changes show too. */
async function leaveForNextRun(kit: Kit, screenings: Kept['screenings']): Promise<void> {
  if (!kit.target.keepToken) return;
  const { items, ties } = await sampleDataOf(kit);
  const tied = new Set(ties.flat().map(({ id }) => id));
  const single = items.filter(({ id }) => !tied.has(id));
  const step = Math.max(1, Math.floor(single.length / SCREENINGS));
  const chosen = single.filter((_, index) => index % step === 0).slice(0, SCREENINGS);
  const tenantId = (await kit.tenantOf()).toLowerCase();
  const pages = kit.knowledge.pages.filter(({ request }) => request.url.toLowerCase().includes(tenantId));
  const goesOn = new Map(pages.map((page) => [page.request.url, pageOf(page).nextUrl !== undefined]));
  const nexts = pages
    .flatMap((page) => pageOf(page).nextUrl ?? [])
    .filter((url, index, all) => isTrusted(url, kit.target) && all.indexOf(url) === index);
  await keep(kit, {
    nexts: [nexts[0], nexts.at(-1)].flatMap((url) =>
      url ? { url, keptAtMs: Date.now(), goesOn: goesOn.get(url) } : [],
    ),
    screenings:
      screenings.length > 0 ? screenings : chosen.map(({ id, testTime }) => ({ id: String(id), testTime })),
  });
}
