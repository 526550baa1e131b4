/** Erlang's queue: Poisson arrivals, exponential service, some workers. */

/** The share of requests that take longer than t seconds; mu: what one worker does a second, rate: below workers × mu. */
export function lateShare(workers: number, mu: number, rate: number, t: number): number {
  const load = rate / mu;
  let blocked = 1;
  for (let k = 1; k <= workers; k += 1) blocked = (load * blocked) / (k + load * blocked);
  const waits = blocked / (1 - (load / workers) * (1 - blocked));
  const spare = (workers - 1) * mu - rate;
  const both = Math.abs(spare) < 1e-9 ? mu * t : (mu / spare) * (1 - Math.exp(-spare * t));
  return Math.exp(-mu * t) * (1 + waits * both);
}
