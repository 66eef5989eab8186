import type { ServerResponse } from 'node:http';
import { epochMs, nowUs } from './arrivals.ts';
import { answer, badRequest, numberIn, tooMany } from './http.ts';

/** What a language model's provider allows in any minute. */
export interface MinuteLimits {
  readonly requests: number;
  readonly tokens: number;
}

/** One request: when it came, when it was answered, and what it used. Refused ones use nothing. */
export interface Completion {
  readonly atUs: number;
  /** Null while it is under way. */
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
// How long a token takes, and each answer besides. Real models are slower; here it only has to depend on the tokens.
const MS_PER_TOKEN = 0.3;
const ANSWER_MS = 50;

/**
 * A language model: how many tokens a request uses is known when it is answered, not before. Limited in requests and
 * in tokens of any rolling minute; tokens count from the answer, and a minute that is full refuses.
 */
export class Completions {
  readonly #limits: MinuteLimits;
  #list: Completion[] = [];
  /** Where the last minute begins in the list, so that counting it stays cheap. */
  #first = 0;

  constructor(limits: MinuteLimits) {
    this.#limits = limits;
  }

  /** Uses between `least` and `most` tokens, each number as likely; the answer tells how many. */
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
