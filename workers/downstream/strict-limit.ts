/** What the service allows: `rate` tokens a second, at most `burst` at once. */
export interface ServiceLimit {
  readonly rate: number;
  readonly burst: number;
}

/**
 * The service's own limit: a plain token bucket, independent of the library on purpose. A service that
 * used the library to judge the library would prove nothing.
 */
export class StrictLimit {
  #limit: ServiceLimit;
  #tokens: number;
  #atUs: number;

  constructor(limit: ServiceLimit, nowUs: number) {
    this.#limit = limit;
    this.#tokens = limit.burst;
    this.#atUs = nowUs;
  }

  get limit(): ServiceLimit {
    return this.#limit;
  }

  /** Takes `cost` tokens and returns 0, or takes none and returns the seconds until they are there. */
  take(cost: number, nowUs: number): number {
    this.#fill(nowUs);
    if (cost > this.#tokens) return (cost - this.#tokens) / this.#limit.rate;
    this.#tokens -= cost;
    return 0;
  }

  /** Allows more or less from now on; tokens stay, as far as the new burst holds them. */
  change(limit: ServiceLimit, nowUs: number): void {
    this.#fill(nowUs);
    this.#limit = limit;
    this.#tokens = Math.min(limit.burst, this.#tokens);
  }

  #fill(nowUs: number): void {
    const { rate, burst } = this.#limit;
    this.#tokens = Math.min(burst, this.#tokens + ((nowUs - this.#atUs) / 1e6) * rate);
    this.#atUs = nowUs;
  }
}
