/** Mutation test of the judges: without any one of them, a fault passes or fails with other words (laws: law-faults.ts). */
import { expect } from '@playwright/test';
import { REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test } from '../../reference-server/testing.ts';
import { certifyFault, modesOf, selectionOf, verdictErrors, type Mode } from './faults.ts';
import { relative } from 'node:path';
import { Kit } from '../../engine/run/kit.ts';
import { Ledger } from '../../engine/run/state/ledger.ts';
import { ExchangeObserver } from '../../engine/run/observers/exchange-observer.ts';
import type { Judge, Mismatch, Observer } from '../../engine/checks/mismatch.ts';

test.describe.configure({ mode: 'parallel' });

for (const { id } of REQUIREMENTS) {
  const faults = FAULTS.filter((fault) => tripped(fault).includes(id));
  test(`${id}: every judge is needed to find some fault`, FULL, async ({ small, large }) => {
    test.setTimeout(600_000);
    using judges = instrument();
    const errorsOf = async (fault: Fault, mode: Mode, untilProved: boolean): Promise<string[]> => {
      const world = fault.large ? large : small;
      const only = fault.needsNeighbours ? selectionOf(fault) : tripped(fault);
      const report = await certifyFault(world, fault, mode, only, 'in process', untilProved);
      return verdictErrors(fault, report).filter((error) => error.startsWith(`${id} `));
    };
    const open = new Set<Site>();
    const noticed = new Set<Site>();
    const sightings = new Map<Site, { fault: Fault; mode: Mode; witnesses: number }[]>();
    const own = (sites: ReadonlySet<Site>): Site[] => [...sites].filter((site) => site.startsWith(`${id} `));
    const record = async (fault: Fault, mode: Mode): Promise<void> => {
      judges.clear();
      await errorsOf(fault, mode, false);
      for (const site of own(judges.judged))
        if (!isProvedElsewhere(site) && !noticed.has(site)) open.add(site);
      const seen = own(judges.mismatched);
      for (const site of seen)
        sightings.set(site, [...(sightings.get(site) ?? []), { fault, mode, witnesses: seen.length }]);
    };
    const isNoticed = async (site: Site): Promise<boolean> => {
      const seen = (sightings.get(site) ?? []).sort((a, b) => a.witnesses - b.witnesses);
      if (seen[0]?.witnesses === 1) return true;
      judges.disabled = site;
      try {
        for (const { fault, mode } of seen) if ((await errorsOf(fault, mode, true)).length > 0) return true;
        return false;
      } finally {
        judges.disabled = undefined;
      }
    };
    for (const mode of ['full', 'bare'] as const) {
      for (const fault of faults) if (modesOf(fault).includes(mode)) await record(fault, mode);
      for (const site of [...open])
        if (await isNoticed(site)) {
          open.delete(site);
          noticed.add(site);
        }
      if (open.size === 0) break;
      sightings.clear();
    }
    console.log(
      `${id}: ${noticed.size + open.size} judges, ${noticed.size} deletions noticed, ${open.size} not noticed`,
    );
    expect([...open]).toEqual([]);
  });
}

// -- records which judges find a fault, and disables one at a time ---------------------------------

/** `ID file:line`, `ID observer N`, or `ID name` of a rule. */
type Site = string;

/** The sites that judged, and those that found a mismatch, since the last `clear()`. */
class Judges {
  readonly judged = new Set<Site>();
  readonly mismatched = new Set<Site>();
  disabled: Site | undefined;

  clear(): void {
    this.judged.clear();
    this.mismatched.clear();
  }

  /** A spec's check shows what a requirement means; wider judges may find the same, so they are disabled with it, and alone. */
  private isDisabled(site: Site): boolean {
    return site === this.disabled || (!!this.disabled && !isWide(this.disabled) && isWide(site));
  }

  /** The mismatch, unless the site is disabled. */
  hold<M extends Mismatch>(site: Site, mismatch: M | undefined): M | undefined {
    this.judged.add(site);
    if (mismatch) this.mismatched.add(site);
    return this.isDisabled(site) ? undefined : mismatch;
  }
}

/** Judges requests that were not made for its requirement alone. */
const isWide = (site: Site): boolean => / observer |properties\/|in-combinations/.test(site);

/** Laws have their own faults, and kit.ts the judge of valid requests for all requirements. */
const isProvedElsewhere = (site: Site): boolean => /properties\/|engine\/run\/kit\.ts/.test(site);

/** Judges that share a line are distinguished by the cause of their findings. */
const SHARED = /everywhere|7\.2-outage/;

/** The position of the caller's caller; helpers named `fail` are skipped. */
function callerOf(): string {
  const { stackTraceLimit } = Error;
  // Playwright reads a source map for each frame.
  Error.stackTraceLimit = 6;
  const [, , , ...frames] = new Error().stack!.split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  const frame = frames.find((one) => !one.includes(' at fail '))!;
  const [, path = '', line = ''] = /\(?(?:file:\/\/)?([^\s()]+):(\d+):\d+\)?$/.exec(frame) ?? [];
  return `${relative('', path)}:${line}`;
}

function instrument(): Judges & Disposable {
  const judges = new Judges();
  const { check, checkAll, fail } = Kit.prototype;
  const { add } = Ledger.prototype;
  const watch = ExchangeObserver.prototype as unknown as {
    observeBy: (observers: readonly Observer[], ...rest: unknown[]) => void;
  };
  const { observeBy } = watch;
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
  Kit.prototype.checkAll = function (law, run) {
    const site = `${law.id} ${callerOf()}`;
    return checkAll.call(this, law, async () => hold(site, await run()));
  };
  Kit.prototype.fail = function (finding) {
    const caller = callerOf();
    const site = `${finding.id} ${SHARED.test(caller) ? finding.cause : caller}`;
    if (finding.warning || hold(site, finding.mismatch)) fail.call(this, finding);
  };
  Ledger.prototype.add = function (finding) {
    // A warning about the target file or its data is no failure of a fault.
    if (
      finding.warning ||
      known.has(finding.mismatch) ||
      judges.hold(`${finding.id} ${finding.cause}`, finding.mismatch)
    )
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
