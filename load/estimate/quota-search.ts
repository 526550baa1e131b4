/** A quota needs no queue: what it lets through in the long run is the figure. */
import { atOnceOf } from './at-once.ts';
import { ordered, type Figure } from './figures.ts';
import { quotaOf, type Quota } from './quota.ts';
import type { SearchSettings } from './search.ts';
import type { Sample, Step } from './step.ts';

/** A quota's windows are watched for so long at most, in confirmations. */
const LONGEST_QUOTA = 8;
const ATTEMPTS = 4;
/** As many waits hold two releases: a wait is a window's rest, when its requests are used up. */
const WAITS = 3;
/** A quota lets through no more where twice as much is asked: less than this, unless it allows no burst to speak of. */
const GROWS = 1.04;
/** What lets through so much more refuses a share of whatever is asked. */
const A_SHARE = 1.7;
const DOUBLINGS = 5;

/** Runs at a rate for some seconds, counting answers only. */
export type Watch = (rate: number, seconds: number) => Promise<{ step: Step; samples: readonly Sample[] }>;

/**
 * Watches from release to release; rate: more than it lets through; samples: the answers that showed the quota. Nothing
 * where 429 follows from how many requests are under way, or is a share of whatever is asked.
 */
export async function searchQuota(
  watch: Watch,
  settings: SearchSettings,
  first: { readonly rate: number; readonly samples: readonly Sample[] },
): Promise<Figure | undefined> {
  const { confirmSeconds, stepSeconds, maxRate } = settings;
  const most = LONGEST_QUOTA * confirmSeconds;
  let samples = [...first.samples];
  const longEnough = (): number => {
    const wait = samples.reduce((longest, one) => Math.max(longest, one.retryAfterSeconds ?? 0), 0);
    const window = declaredBy(samples)?.windowSeconds ?? 0;
    const needed = Math.max(window <= most / 2.2 ? 2.2 * window : 0, wait > stepSeconds ? WAITS * wait : 0);
    return Math.min(most, Math.max(confirmSeconds, needed + (needed > 0 ? stepSeconds : 0)));
  };
  let { rate } = first;
  let seconds = longEnough();
  let quota: Quota = { perSecond: 0, error: 1, settled: false, releases: 0 };
  for (let attempt = 0; attempt < ATTEMPTS && !quota.settled; attempt += 1) {
    const run = await watch(rate, seconds);
    if (run.step.limitedRate === 0) {
      // Asked for less than it lets through.
      rate = Math.min(maxRate, rate * 2);
      continue;
    }
    if (atOnceOf(run.samples) !== undefined) return undefined;
    samples = [...samples, ...run.samples];
    quota = quotaOf(run.samples, seconds);
    if (!quota.settled) quota = declared(samples, run.samples, seconds) ?? quota;
    seconds = Math.min(most, Math.max(longEnough(), seconds * 1.3));
  }
  let grew = 1;
  for (let more = 0; more < DOUBLINGS && paced(quota) && rate < maxRate; more += 1) {
    rate = Math.min(maxRate, rate * 2);
    const run = await watch(rate, stepSeconds);
    if (atOnceOf(run.samples) !== undefined) return undefined;
    const again = quotaOf(run.samples, stepSeconds);
    if (!again.settled) break;
    grew = again.perSecond / quota.perSecond;
    quota = again;
    if (grew < GROWS) break;
  }
  if (grew > A_SHARE) return undefined;
  const { perSecond, error, settled } = quota;
  return {
    ...ordered(perSecond, perSecond * (1 - error), perSecond * (1 + error)),
    limitedBy: 'quota',
    basis: 'quota',
    quota,
    confirmed: settled,
    ...(settled
      ? {}
      : {
          unconfirmed: `${quota.releases} of the quota's releases were seen: its window is longer than the run`,
        }),
  };
}

/** Lets through evenly, as far as can be seen. */
const paced = (quota: Quota): boolean => quota.settled && quota.windowSeconds === undefined;

const declaredBy = (samples: readonly Sample[]): Sample['policy'] =>
  samples.findLast(({ policy }) => policy !== undefined)?.policy;

/** What the headers declare, where nothing that was seen contradicts it: waits and counts that are too great. */
function declared(all: readonly Sample[], run: readonly Sample[], seconds: number): Quota | undefined {
  const policy = declaredBy(all);
  if (!policy) return undefined;
  const { limit, windowSeconds } = policy;
  const longestWait = all.reduce((longest, one) => Math.max(longest, one.retryAfterSeconds ?? 0), 0);
  const passed = run.filter(({ status }) => status === 200).length;
  if (longestWait > windowSeconds * 1.05 + 1 || passed > limit * (2 + seconds / windowSeconds))
    return undefined;
  return {
    perSecond: limit / windowSeconds,
    error: 0.02,
    settled: true,
    releases: 0,
    limit,
    windowSeconds,
    declared: true,
  };
}
