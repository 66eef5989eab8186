import { StoreUnavailableError } from '../../../core/errors.ts';

const SPACE = 32;
const ZERO = 48;
const NINE = 57;

/**
 * The whole numbers of a reply, one after the other. Anything else in it is an error: a reply that cannot be read must
 * not pass for a grant.
 */
export class Numbers {
  #at = 0;

  constructor(private readonly text: string) {}

  /** @throws {@link StoreUnavailableError} if there is none. */
  next(): number {
    const { text } = this;
    let value = 0;
    let at = this.#at;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === SPACE) break;
      if (code < ZERO || code > NINE) throw malformed(text);
      value = value * 10 + (code - ZERO);
    }
    if (at === this.#at || value > Number.MAX_SAFE_INTEGER) throw malformed(text);
    this.#at = at + 1;
    return value;
  }

  /** A number that is one of 0 to `count` − 1. */
  oneOf(count: number): number {
    const value = this.next();
    if (value >= count) throw malformed(this.text);
    return value;
  }

  /** Checks that nothing is left. */
  end(): void {
    if (this.#at !== this.text.length + 1) throw malformed(this.text);
  }
}

/**
 * The numbers of a decide reply, or null if the store says that the caller's config is not the one in force.
 * @throws {@link StoreUnavailableError} for anything else.
 */
export function parseReply(reply: unknown): Numbers | null {
  if (Array.isArray(reply) && reply.length === 2 && typeof reply[1] === 'string') {
    if (reply[0] === 0) return new Numbers(reply[1]);
    if (reply[0] === 1) return null;
  }
  throw malformed(JSON.stringify(reply) ?? 'nothing');
}

function malformed(received: string): StoreUnavailableError {
  const shown = received.length > 200 ? `${received.slice(0, 200)}…` : received;
  return new StoreUnavailableError(
    `expected the whole numbers of a decision from the store, received ${shown}`,
  );
}
