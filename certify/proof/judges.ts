/** Mutation of judges: records which of them find a fault, and disables one at a time. */
import { relative } from 'node:path';
import { Kit } from '../../engine/run/kit.ts';
import { Ledger } from '../../engine/run/state/ledger.ts';
import { ExchangeObserver } from '../../engine/run/observers/exchange-observer.ts';
import type { Judge, Mismatch, Observer } from '../../engine/checks/mismatch.ts';
import type { RequirementId } from '../../engine/requirements.ts';

/** `ID file:line`, `ID observer N`, or `ID name` of a rule. */
export type Site = string;

/** The sites that judged, and those that found a mismatch, since the last `clear()`. */
export class Judges {
  readonly judged = new Set<Site>();
  readonly mismatched = new Set<Site>();
  /** The site whose judge reports no mismatch. */
  disabled: Site | undefined;

  clear(): void {
    this.judged.clear();
    this.mismatched.clear();
  }

  /** The mismatch, unless the site is disabled. */
  hold<M extends Mismatch>(site: Site, mismatch: M | undefined): M | undefined {
    this.judged.add(site);
    if (mismatch) this.mismatched.add(site);
    return site === this.disabled ? undefined : mismatch;
  }
}

/** Laws have their own faults, and kit.ts holds the judge of valid requests for all requirements. */
export const isProvedElsewhere = (site: Site): boolean => /properties\/|engine\/run\/kit\.ts/.test(site);

/** Judges that share a line are distinguished by the cause of their findings. */
const SHARED = /everywhere|7\.2-outage/;

/** The position of the caller's caller; helpers named `fail` are skipped. */
function callerOf(): string {
  const frames = new Error().stack!.split('\n').slice(3);
  const frame = frames.find((line) => !/^ +at fail /.test(line)) ?? '';
  const [, path = '', line = ''] = /\(?(?:file:\/\/)?([^\s()]+):(\d+):\d+\)?$/.exec(frame) ?? [];
  return `${relative('', path)}:${line}`;
}

/** Instruments all judges of this process until disposed. */
export function instrument(): Judges & Disposable {
  const judges = new Judges();
  const { check, checkAll, fail } = Kit.prototype;
  const { add } = Ledger.prototype;
  const watch = ExchangeObserver.prototype as unknown as {
    observeBy: (observers: readonly Observer[], ...rest: unknown[]) => void;
  };
  const { observeBy } = watch;
  /** Mismatches whose site is already recorded. */
  const known = new WeakSet<Mismatch>();
  const hold = <M extends Mismatch>(site: Site, mismatch: M | undefined): M | undefined => {
    if (mismatch) known.add(mismatch);
    return judges.hold(site, mismatch);
  };
  Kit.prototype.check = function (id, exchange, judge, cause) {
    const site = `${id} ${callerOf()}`;
    const held: Judge = (answer) => hold(site, judge(answer));
    return check.call(this, id, exchange, held, cause);
  };
  Kit.prototype.checkAll = function (id, cause, run, options) {
    const site = `${id} ${callerOf()}`;
    return checkAll.call(this, id, cause, async () => hold(site, await run()), options);
  };
  Kit.prototype.fail = function (finding) {
    const caller = callerOf();
    const site = `${finding.id} ${SHARED.test(caller) ? finding.cause : caller}`;
    if (hold(site, finding.mismatch)) fail.call(this, finding);
  };
  Ledger.prototype.add = function (finding) {
    if (known.has(finding.mismatch) || judges.hold(`${finding.id} ${finding.cause}`, finding.mismatch))
      add.call(this, finding);
  };
  const wrapped = new WeakMap<Observer, Observer>();
  watch.observeBy = function (observers, ...rest) {
    const seen = new Map<RequirementId, number>();
    const held = observers.map((observer) => {
      const number = (seen.get(observer.id) ?? 0) + 1;
      seen.set(observer.id, number);
      const site = `${observer.id} observer ${number}`;
      if (!wrapped.has(observer))
        wrapped.set(observer, { ...observer, judge: (exchange) => hold(site, observer.judge(exchange)) });
      return wrapped.get(observer)!;
    });
    observeBy.call(this, held, ...rest);
  };
  return Object.assign(judges, {
    [Symbol.dispose]() {
      Object.assign(Kit.prototype, { check, checkAll, fail });
      Object.assign(Ledger.prototype, { add });
      watch.observeBy = observeBy;
    },
  });
}
