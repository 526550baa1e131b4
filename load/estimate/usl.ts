/** The Universal Scalability Law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), fitted to concurrency and throughput. */

export interface UslFit {
  /** Throughput of one request at a time; contention; crosstalk. */
  readonly lambda: number;
  readonly sigma: number;
  readonly kappa: number;
  /** Share of the variance that the law explains. */
  readonly r2: number;
  readonly fits: boolean;
  /** Why it does not fit. */
  readonly reason?: string;
  /** The concurrency beyond which throughput falls; absent where there is none. */
  readonly peakConcurrency?: number;
}

export interface UslPoint {
  readonly concurrency: number;
  readonly throughput: number;
}

const LEAST_POINTS = 5;
const LEAST_R2 = 0.95;

/** Linear least squares on N / X(N) = (1/λ)·(1 + σ(N − 1) + κN(N − 1)), with σ and κ at least 0. */
export function fitUsl(points: readonly UslPoint[]): UslFit {
  const usable = points.filter(({ concurrency, throughput }) => concurrency > 0 && throughput > 0);
  const none = { lambda: NaN, sigma: NaN, kappa: NaN, r2: NaN, fits: false };
  if (usable.length < LEAST_POINTS) return { ...none, reason: `${usable.length} steps are too few` };
  const spread =
    Math.max(...usable.map((one) => one.concurrency)) / Math.min(...usable.map((one) => one.concurrency));
  if (spread < 4) return { ...none, reason: 'the steps cover too little concurrency' };

  let best: { a: number; b: number; c: number; error: number } | undefined;
  for (const terms of [[0, 1, 2], [0, 1], [0, 2], [0]]) {
    const solved = leastSquares(usable, terms);
    if (!solved || solved.some((value, index) => index > 0 && value < 0) || solved[0]! <= 0) continue;
    const [a, b, c] = solved as [number, number, number];
    const error = usable.reduce((sum, { concurrency: n, throughput: x }) => {
      const predicted = n / (a + b * (n - 1) + c * n * (n - 1));
      return sum + (predicted - x) ** 2;
    }, 0);
    if (!best || error < best.error) best = { a, b, c, error };
  }
  if (!best) return { ...none, reason: 'no law with positive parameters' };
  const { a, b, c, error } = best;
  const mean = usable.reduce((sum, one) => sum + one.throughput, 0) / usable.length;
  const total = usable.reduce((sum, one) => sum + (one.throughput - mean) ** 2, 0);
  const r2 = total === 0 ? 0 : 1 - error / total;
  const [lambda, sigma, kappa] = [1 / a, b / a, c / a];
  const fits = r2 >= LEAST_R2;
  return {
    lambda,
    sigma,
    kappa,
    r2,
    fits,
    ...(fits ? {} : { reason: `it explains ${(100 * Math.max(0, r2)).toFixed(0)} % of the variance` }),
    ...(kappa > 0 && sigma < 1 ? { peakConcurrency: Math.sqrt((1 - sigma) / kappa) } : {}),
  };
}

/** Weighted by throughput, so that errors of X and not of 1/X count; terms left out are 0. */
function leastSquares(points: readonly UslPoint[], terms: readonly number[]): number[] | undefined {
  const rows = points.map(({ concurrency: n, throughput: x }) => {
    const weight = (x * x) / n;
    const all = [1, n - 1, n * (n - 1)];
    return { of: terms.map((term) => all[term]! * weight), y: (n / x) * weight };
  });
  const size = terms.length;
  const matrix = terms.map((_, i) => [
    ...terms.map((_, j) => rows.reduce((sum, row) => sum + row.of[i]! * row.of[j]!, 0)),
    rows.reduce((sum, row) => sum + row.of[i]! * row.y, 0),
  ]);
  for (let pivot = 0; pivot < size; pivot += 1) {
    const divisor = matrix[pivot]![pivot]!;
    if (Math.abs(divisor) < 1e-12) return undefined;
    for (let row = 0; row < size; row += 1) {
      if (row === pivot) continue;
      const factor = matrix[row]![pivot]! / divisor;
      for (let column = pivot; column <= size; column += 1)
        matrix[row]![column]! -= factor * matrix[pivot]![column]!;
    }
  }
  const solution = [0, 0, 0];
  for (const [index, term] of terms.entries())
    solution[term] = matrix[index]![size]! / matrix[index]![index]!;
  return solution;
}
