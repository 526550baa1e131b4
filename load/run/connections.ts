/** How many virtual users, and so connections, a step is asked with: more where requests waited, fewer where refused. */

/** A limit of connections is known this closely. */
const CLOSE = 1.15;

/**
 * How many connections the target was seen to give, and to refuse. Each next number is nearer to the limit. A restart
 * refuses connections as well: a limit has to show twice, and is none where as many are accepted later.
 */
export class Connections {
  accepted = 1;
  refused = Infinity;
  #suspected = Infinity;

  /** So many VUs leave room for k6's setup, which keeps a connection of its own, and for what is not known closely. */
  get most(): number {
    return Math.max(1, Math.min(Math.ceil(this.refused / CLOSE), this.refused - 1) - 1);
  }

  /** Connections of this many VUs were refused: how many to try next; undefined where as many were accepted before. */
  refuse(vus: number): number | undefined {
    if (vus <= this.accepted) return undefined;
    if (this.refused === Infinity && this.#suspected === Infinity) {
      this.#suspected = vus;
      return vus;
    }
    this.refused = Math.min(this.refused, vus + 1);
    return Math.max(1, Math.floor(Math.sqrt(this.accepted * vus)));
  }

  accept(vus: number): void {
    this.accepted = Math.max(this.accepted, vus);
    if (vus + 1 >= this.refused || vus >= this.#suspected) this.#suspected = Infinity;
    if (vus + 1 >= this.refused) this.refused = Infinity;
  }

  /** Requests waited for this many VUs: how many to try next of those needed; `all` where the target gives no more. */
  more(vus: number, needed: number): number | 'all' {
    if (vus >= this.most) return 'all';
    // Half-way, by ratio, to what is refused.
    const between = Math.floor(Math.sqrt(vus * this.refused));
    return Math.min(needed, this.most, Math.max(vus + 1, between));
  }
}
