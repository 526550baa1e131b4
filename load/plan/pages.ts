/** Pages a poll takes: a poll finds a Poisson number of screenings, and asks one page even where it finds none. */

/** Of max(1, ⌈N / pageSize⌉) for N screenings of the given mean, arriving independently of one another. */
export function pagesOfPoll(meanScreenings: number, pageSize: number): number {
  // Beyond fifty pages the last one is half full in the mean.
  if (meanScreenings > 50 * pageSize && meanScreenings > 1000) return meanScreenings / pageSize + 0.5;
  let mean = 1;
  // Sums of the probabilities of more than `page` pages.
  for (let page = 1; ; page += 1) {
    const more = 1 - poissonAtMost(page * pageSize, meanScreenings);
    mean += more;
    if (more < 1e-9 && page * pageSize > meanScreenings) return mean;
  }
}

/** The number of pages that so large a share of polls does not exceed. */
export function pagesAtMost(meanScreenings: number, pageSize: number, share: number): number {
  let pages = 1;
  while (poissonAtMost(pages * pageSize, meanScreenings) < share) pages += 1;
  return pages;
}

/** The probability of at most k, summed in logarithms: means of thousands underflow otherwise. */
function poissonAtMost(k: number, mean: number): number {
  if (mean <= 0) return 1;
  let logTerm = -mean;
  let sum = Math.exp(logTerm);
  for (let n = 1; n <= k; n += 1) {
    logTerm += Math.log(mean / n);
    sum += Math.exp(logTerm);
  }
  return Math.min(1, sum);
}
