/** Judges every exchange of a run by all observers, and records what it showed. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import type { Exchange } from '../../client/exchange.ts';
import { formEncode } from '../../client/transport.ts';
import { answerObservers } from '../../checks/answers.ts';
import { coverageObservers, mayLack } from '../../checks/coverage.ts';
import { withoutTraversal } from '../../client/page.ts';
import { answered200, errorObservers } from '../../checks/errors.ts';
import type { Judge, Mismatch, Observer } from '../../checks/mismatch.ts';
import { nextObservers } from '../../checks/next.ts';
import { pageObservers, sayItem } from '../../checks/page.ts';
import { tokenObservers } from '../../checks/token.ts';
import { compareInstants, sayInstant } from '../../data/instant.ts';
import type { RequirementId } from '../../requirements.ts';
import type { RunContext } from '../state/context.ts';
import { Knowledge, shownItems, type Outside, type Shown } from '../state/knowledge.ts';
import { observeToken } from './valid-token.ts';

/** Set during confirmation, whose requests are not counted again. Shared, because each AsyncLocalStorage slows every promise. */
const unobserved = new AsyncLocalStorage<ExchangeObserver>();

export class ExchangeObserver {
  private readonly observers: readonly Observer[];

  constructor(private readonly run: RunContext) {
    const { target, client, knowledge } = run;
    const { oracleOf, notUnfinished, differsFromDataset } = knowledge;
    this.observers = [
      ...pageObservers(oracleOf),
      ...nextObservers(target, oracleOf, knowledge),
      ...errorObservers(target.errorCodePointer, client.clock, () => knowledge.pages.length > 0),
      ...tokenObservers(target, client.clock),
      ...answerObservers(target, client.issued),
      ...coverageObservers(oracleOf),
      { id: '4.1-success', applies: (exchange) => this.isValidMint(exchange), judge: answered200 },
      {
        id: '4.2-window',
        applies: () => target.unfinished !== undefined,
        judge: notUnfinished,
      },
      {
        id: '2.3-object-stable',
        applies: (exchange) => knowledge.hasRecorded(exchange),
        judge: differsFromDataset,
      },
    ];
  }

  observe(exchange: Exchange): void {
    if (unobserved.getStore() === this) return;
    const { client, knowledge, ledger } = this.run;
    const outside = knowledge.outsideDataset(exchange);
    if (outside) this.reportOutside(outside);
    this.observeBy(this.observers, exchange);
    const items = shownItems(exchange).length;
    if (items > 0) {
      ledger.count('pages');
      ledger.count('screenings', items);
    }
    this.observeIds(exchange, items);
    this.observeObjects(exchange, items);
    observeToken(this.run, exchange);
    knowledge.noteServed(exchange);
    knowledge.remember(exchange, client.requests, this.run.clock.now());
  }

  /** From now on the dataset says which screenings exist, but no longer that there are no others. */
  private reportOutside({ client, first, last, window, item }: Outside): void {
    const name = client === 'primary' ? 'dataset' : 'secondDataset';
    const isLater = compareInstants(item.at, last) >= 0;
    const reason =
      `the tenant of clients.${client} has ${sayItem(item)}, ` +
      (isLater
        ? `after the last screening of its dataset, at ${sayInstant(last)}: screenings were added; `
        : `before the first screening of its dataset, at ${sayInstant(first)}: the dataset is a part; `) +
      `export ${name} again${client === 'primary' && !window ? ', or name the part in window' : ''}`;
    this.run.ledger.supplyUnusable(['4.2-window'], reason);
  }

  /** Judges a recorded exchange; `except`: requirements that a recording cannot show. */
  judgeRecorded(exchange: Exchange, except: ReadonlySet<RequirementId>): void {
    const { knowledge, ledger } = this.run;
    this.observeBy(
      this.observers.filter(({ id }) => !except.has(id)),
      exchange,
    );
    const items = shownItems(exchange).length;
    if (!except.has('2.3-id-stable')) this.observeIds(exchange, items);
    ledger.count('pages', items > 0 ? 1 : 0);
    knowledge.remember(exchange);
  }

  /** Requests sent by `ask` are neither judged nor counted. */
  unobserved<T>(ask: () => Promise<T>): Promise<T> {
    return unobserved.run(this, ask);
  }

  /** Judges earlier pages by later answers, such as a page that lacks a screening seen before or since. */
  async judgeEarlierPages(): Promise<void> {
    const { oracleOf, pages, sentBy } = this.run.knowledge;
    const learnt: typeof oracleOf = (tenantId) => {
      const oracle = oracleOf(tenantId);
      return oracle?.authoritative ? undefined : oracle;
    };
    const observers = coverageObservers(learnt);
    for (const exchange of pages) {
      if (!mayLack(exchange, sentBy.get(exchange)!, learnt)) continue;
      this.observeBy(observers, exchange, { count: false });
      // A parsed page stays in memory until the end of the event loop turn.
      await setImmediate();
    }
  }

  /** A token request that succeeded before must succeed again; server failures break another requirement. */
  private isValidMint({ request: { channel, form, isChunked }, status }: Exchange): boolean {
    return (
      channel === 'token' &&
      status < 500 &&
      status !== 429 &&
      // A server may require Content-Length.
      !isChunked &&
      form !== undefined &&
      this.run.client.earned.has(formEncode(form))
    );
  }

  /** A testTime may be corrected: then the screening is no longer at both instants. */
  private observeIds(exchange: Exchange, items: number): void {
    if (items === 0) return;
    const { client, knowledge, ledger } = this.run;
    ledger.check('2.3-id-stable');
    const moved = knowledge.movedId(exchange);
    if (!moved) return;
    const { item, before, ...mismatch } = moved;
    const now = ({ request: { url } }: Exchange): Promise<Exchange> =>
      client.send({ ...exchange.request, url: withoutTraversal(url), traversalSeq: undefined });
    const isCorrected = async (before: Shown): Promise<boolean> =>
      knowledge.correct(exchange, item, before, await now(exchange), await now(before.exchange));
    ledger.add({
      id: '2.3-id-stable',
      cause: 'observed',
      mismatch,
      exchange,
      ...(before
        ? { needsAgain: true, again: async () => ((await isCorrected(before)) ? undefined : mismatch) }
        : { judge: (page) => knowledge.movedId(page) }),
    });
  }

  /** Confirmation repeats both requests: they still differ, or the screening was changed in between. */
  private observeObjects(exchange: Exchange, items: number): void {
    if (items === 0) return;
    const { client, knowledge, ledger } = this.run;
    ledger.check('2.3-object-stable');
    const changed = knowledge.changedScreening(exchange);
    if (!changed) return;
    const { before, ...mismatch } = changed;
    ledger.add({
      id: '2.3-object-stable',
      cause: 'two answers',
      mismatch,
      exchange,
      again: async () =>
        differentObjects(await client.send(before.request), await client.send(exchange.request)),
    });
  }

  private observeBy(observers: readonly Observer[], exchange: Exchange, { count = true } = {}): void {
    for (const { id, applies, judge } of observers) {
      if (!applies(exchange)) continue;
      if (count) this.run.ledger.check(id);
      const mismatch = judge(exchange);
      if (mismatch)
        this.run.ledger.add({ id, cause: 'observed', mismatch, exchange, judge: judgeWhere(applies, judge) });
    }
  }
}

/** A repeated request may get an answer that the judge does not apply to. */
const judgeWhere =
  (applies: Observer['applies'], judge: Judge): Judge =>
  (exchange) =>
    applies(exchange) ? judge(exchange) : undefined;

/** The same screening in two answers, with other values. */
function differentObjects(first: Exchange, second: Exchange): Mismatch | undefined {
  const knowledge = new Knowledge();
  knowledge.remember(first);
  return knowledge.changedScreening(second);
}
