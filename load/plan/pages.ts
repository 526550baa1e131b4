/** Pages per poll: a poll finds a Poisson number of screenings, and requests one page even if there are none. */

/** The mean of max(1, ⌈N / pageSize⌉) for a Poisson number N of screenings. */
export function pagesOfPoll(meanScreenings: number, pageSize: number): number {
  // With more than fifty pages, the last one is half full on average.
  if (meanScreenings > 50 * pageSize && meanScreenings > 1000) return meanScreenings / pageSize + 0.5;
  let mean = 1;
  // The mean is the sum of the probabilities of more than `page` pages.
  for (let page = 1; ; page += 1) {
    const more = 1 - poissonAtMost(page * pageSize, meanScreenings);
    mean += more;
    if (more < 1e-9 && page * pageSize > meanScreenings) return mean;
  }
}

/** Returns the quantile of the number of pages per poll. */
export function pagesAtMost(meanScreenings: number, pageSize: number, share: number): number {
  let pages = 1;
  while (poissonAtMost(pages * pageSize, meanScreenings) < share) pages += 1;
  return pages;
}

/** The Poisson distribution function at k, computed with logarithms to avoid underflow for large means. */
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
