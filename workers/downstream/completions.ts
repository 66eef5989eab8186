import type { ServerResponse } from 'node:http';
import { epochMs, nowUs } from './arrivals.ts';
import { answer, badRequest, numberIn, tooMany } from './http.ts';

/** What a language model's provider allows in any minute. */
export interface MinuteLimits {
  readonly requests: number;
  readonly tokens: number;
}

/** One request: when it came, when it was answered, and what it used; nothing if it was refused. */
export interface Completion {
  readonly atUs: number;
  /** Null until it is answered. */
  endUs: number | null;
  readonly tokens: number;
  readonly refused: boolean;
}

/** The answer of GET /completions. */
export interface CompletionTrace {
  readonly epochMs: number;
  readonly completions: readonly Completion[];
}

const MINUTE_US = 60_000_000;
// The time of a token, and of each answer on top. Real models are slower; here the time must only depend on the tokens.
const MS_PER_TOKEN = 0.3;
const ANSWER_MS = 50;

/**
 * A language model: the tokens of a request are known only when it is answered. Any rolling minute has a limit of requests
 * and of tokens; tokens count from the answer, and a full minute refuses.
 */
export class Completions {
  readonly #limits: MinuteLimits;
  #list: Completion[] = [];
  /** Where the last minute begins in the list, so that counting it stays cheap. */
  #first = 0;

  constructor(limits: MinuteLimits) {
    this.#limits = limits;
  }

  /** Uses between `least` and `most` tokens, evenly distributed; the answer says how many. */
  complete(atUs: number, query: URLSearchParams, response: ServerResponse): void {
    const least = numberIn(query, 'least', 1);
    const most = numberIn(query, 'most', least);
    if (!(least >= 1 && most >= least)) {
      badRequest(response, `least and most: expected 1 or more and least first, got ${query}`);
      return;
    }
    const used = this.#lastMinute(atUs);
    if (used.requests >= this.#limits.requests || used.tokens >= this.#limits.tokens) {
      this.#list.push({ atUs, endUs: atUs, tokens: 0, refused: true });
      tooMany(response, (this.#list[this.#first]!.atUs + MINUTE_US - atUs) / 1000);
      return;
    }
    const tokens = least + Math.floor(Math.random() * (most - least + 1));
    const completion: Completion = { atUs, endUs: null, tokens, refused: false };
    this.#list.push(completion);
    setTimeout(
      () => {
        completion.endUs = nowUs();
        answer(response, 200, { tokens });
      },
      ANSWER_MS + tokens * MS_PER_TOKEN,
    );
  }

  trace(response: ServerResponse): void {
    answer(response, 200, { epochMs, completions: this.#list } satisfies CompletionTrace);
  }

  reset(): void {
    this.#list = [];
    this.#first = 0;
  }

  #lastMinute(atUs: number): { requests: number; tokens: number } {
    while (this.#list[this.#first] && this.#list[this.#first]!.atUs <= atUs - MINUTE_US) this.#first++;
    const recent = this.#list.slice(this.#first).filter(({ refused }) => !refused);
    return {
      requests: recent.length,
      tokens: recent.reduce((sum, { endUs, tokens }) => sum + (endUs === null ? 0 : tokens), 0),
    };
  }
}
