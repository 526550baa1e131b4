/** What a count of bad answers says about their share in the long run: a one-sided binomial test either way. */

/** holds: surely below the share; breaks: surely above it; undecided: more answers are needed. */
export type Verdict = 'holds' | 'breaks' | 'undecided';

/** Fewer answers than these say nothing about one in a hundred. */
export const LEAST_SAMPLES = 300;

/** How often chance alone may look like a share below, or above. */
const HOLDS_BY_CHANCE = 0.05;
const BREAKS_BY_CHANCE = 0.02;

/** The probability of at most k bad ones among n, each bad with probability p. */
export function binomialAtMost(k: number, n: number, p: number): number {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  let logTerm = n * Math.log1p(-p);
  let sum = Math.exp(logTerm);
  for (let i = 0; i < k; i += 1) {
    logTerm += Math.log((n - i) / (i + 1)) + Math.log(p) - Math.log1p(-p);
    sum += Math.exp(logTerm);
  }
  return Math.min(1, sum);
}

/** Holds a number of bad answers of a total against the share that may be bad. */
export function shareVerdict(bad: number, samples: number, share: number): Verdict {
  if (1 - binomialAtMost(bad - 1, samples, share) <= BREAKS_BY_CHANCE) return 'breaks';
  if (samples >= LEAST_SAMPLES && binomialAtMost(bad, samples, share) <= HOLDS_BY_CHANCE) return 'holds';
  return 'undecided';
}

/** How likely the share itself shows as many bad ones, where that is to be measured for longer. */
const SUSPECT = 0.2;

/** Whether as many bad ones are more than the share would show; says so where there are too few answers to be sure. */
export function moreThanChance(bad: number, samples: number, share: number): boolean {
  return 1 - binomialAtMost(bad - 1, samples, share) <= SUSPECT;
}
