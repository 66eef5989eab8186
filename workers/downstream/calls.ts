import type { ServerResponse } from 'node:http';
import { Arrivals, nowUs } from './arrivals.ts';
import { answer, badRequest, numberIn, tooMany } from './http.ts';
import { type ServiceLimit, StrictLimit } from './strict-limit.ts';

/** Plain calls: done in `serviceMs`, or answered 429 because of the service's limit or a closed key. */
export class Calls {
  readonly #arrivals = new Arrivals();
  readonly #serviceMs: number;
  #limit: StrictLimit;
  /** When a closed key opens again, in microseconds of the service's clock. */
  readonly #closedUntilUs = new Map<string, number>();

  constructor(limit: ServiceLimit, serviceMs: number) {
    this.#limit = new StrictLimit(limit, nowUs());
    this.#serviceMs = serviceMs;
  }

  call(atUs: number, query: URLSearchParams, response: ServerResponse): void {
    const cost = numberIn(query, 'cost', 1);
    if (!Number.isInteger(cost) || cost < 1) {
      badRequest(response, `cost: expected a whole number of at least 1, got ${query.get('cost')}`);
      return;
    }
    const key = query.get('key') ?? '';
    const closedUs = (this.#closedUntilUs.get(key) ?? 0) - atUs;
    // A call to a closed key is rejected first, and takes nothing from the others.
    const waitMs = closedUs > 0 ? closedUs / 1000 : this.#limit.take(cost, atUs) * 1000;
    this.#arrivals.add([
      atUs,
      cost,
      query.get('job') ?? '',
      key,
      numberIn(query, 'attempt', 1),
      numberIn(query, 'ageMs', 0),
      waitMs > 0 ? 1 : 0,
    ]);
    if (waitMs > 0) tooMany(response, waitMs);
    else if (this.#serviceMs > 0) setTimeout(answer, this.#serviceMs, response, 200, { ok: true });
    else answer(response, 200, { ok: true });
  }

  stats(atUs: number, response: ServerResponse): void {
    answer(response, 200, this.#arrivals.stats(atUs));
  }

  trace(response: ServerResponse): void {
    answer(response, 200, this.#arrivals.trace());
  }

  /** The service can take more or less from now on. Answers when, on the clock of the trace. */
  changeLimit(atUs: number, query: URLSearchParams, response: ServerResponse): void {
    const next = this.#limitIn(query, response);
    if (next === undefined) return;
    this.#limit.change(next, atUs);
    answer(response, 200, { atUs });
  }

  /** Answers every call of one key with 429 for a while, whatever the limit allows. */
  closeKey(atUs: number, query: URLSearchParams, response: ServerResponse): void {
    const forMs = numberIn(query, 'ms', 0);
    if (!(forMs > 0)) {
      badRequest(response, `ms: expected a number over 0, got ${query.get('ms')}`);
      return;
    }
    this.#closedUntilUs.set(query.get('key') ?? '', atUs + forMs * 1000);
    answer(response, 200, { atUs });
  }

  reset(query: URLSearchParams, response: ServerResponse): void {
    const next = this.#limitIn(query, response);
    if (next === undefined) return;
    this.#limit = new StrictLimit(next, nowUs());
    this.#arrivals.clear();
    this.#closedUntilUs.clear();
    answer(response, 200, next);
  }

  #limitIn(query: URLSearchParams, response: ServerResponse): ServiceLimit | undefined {
    const limit = {
      rate: numberIn(query, 'rate', this.#limit.limit.rate),
      burst: numberIn(query, 'burst', this.#limit.limit.burst),
    };
    if (limit.rate > 0 && limit.burst > 0) return limit;
    badRequest(response, `rate and burst: expected numbers over 0, got ${query}`);
    return undefined;
  }
}
