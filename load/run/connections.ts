/** The number of VUs, and so of connections: raised if requests waited, lowered if connections were refused. */

/** The search stops at this ratio between refused and accepted connections. */
const PRECISION = 1.15;

/**
 * The numbers of connections that the target accepted and refused; each next number is closer to the limit. Since a
 * restart refuses connections too, a limit must show twice, and is dropped if as many are accepted later.
 */
export class Connections {
  accepted = 1;
  refused = Infinity;
  #suspected = Infinity;

  /** The highest number of VUs; leaves room for k6's setup, which has its own connection, and for the precision. */
  get most(): number {
    return Math.max(1, Math.min(Math.ceil(this.refused / PRECISION), this.refused - 1) - 1);
  }

  /** Connections of this many VUs were refused: returns the next number; undefined if as many worked before. */
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

  /** Requests waited with this many VUs: returns the next number; `all` if the target accepts no more. */
  more(vus: number, needed: number): number | 'all' {
    if (vus >= this.most) return 'all';
    // The geometric mean of the current and the refused number.
    const between = Math.floor(Math.sqrt(vus * this.refused));
    return Math.min(needed, this.most, Math.max(vus + 1, between));
  }
}
