import type { IncomingMessage, ServerResponse } from 'node:http';
import { epochMs, nowUs } from './arrivals.ts';
import { FencedSlots, type Slot } from './fenced-slots.ts';
import { answer, badRequest, numberIn } from './http.ts';

/** How a held call ended: as it should, cut off with its process, rejected for its fence; or not yet. */
export type HoldEnd = 'done' | 'cut' | 'outlived' | 'held';

/** One call that held a slot, as the service saw it; microseconds of its clock. */
export interface Hold {
  readonly beginUs: number;
  endUs: number | null;
  end: HoldEnd;
  readonly fence: number;
  /** Process id of the caller. */
  readonly process: number;
  /** What the caller meant to take, in milliseconds. */
  readonly workMs: number;
  /** When the fencing number showed that another holder had its slot; null: never. */
  exposedUs: number | null;
}

/** The answer of GET /holds. */
export interface HoldTrace {
  readonly epochMs: number;
  readonly holds: readonly Hold[];
}

/**
 * Calls that occupy the service from the head of a request to the end of its body, as a transaction occupies a database.
 * So a frozen caller keeps its place, and a killed one loses it at once.
 */
export class Holds {
  readonly #slots: FencedSlots;
  readonly #holds: { hold: Hold; slot: Slot }[] = [];

  /** @param cap - How many the service can have at once. It counts them, and rejects callers that outlived their slot. */
  constructor(cap: number) {
    this.#slots = new FencedSlots(cap);
  }

  hold(atUs: number, query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const fence = numberIn(query, 'fence', Number.NaN);
    if (!Number.isInteger(fence)) {
      badRequest(response, `fence: expected a whole number, got ${query.get('fence')}`);
      return;
    }
    const slot = this.#slots.begin(fence, atUs);
    const hold: Hold = {
      beginUs: atUs,
      endUs: null,
      end: 'held',
      fence,
      process: numberIn(query, 'process', 0),
      workMs: numberIn(query, 'workMs', 0),
      exposedUs: null,
    };
    this.#holds.push({ hold, slot });
    const end = (how: HoldEnd) => {
      if (hold.endUs !== null) return;
      hold.endUs = nowUs();
      hold.end = how;
      this.#slots.end(slot);
    };
    request.on('end', () => {
      // The last moment to refuse: the work of an outlived holder must not be kept.
      const outlived = slot.exposedUs !== null;
      end(outlived ? 'outlived' : 'done');
      answer(
        response,
        outlived ? 409 : 200,
        outlived ? { error: 'newer holders have the slots' } : { ok: true },
      );
    });
    request.on('close', () => end('cut'));
  }

  trace(response: ServerResponse): void {
    const holds = this.#holds.map(({ hold, slot }) => ({ ...hold, exposedUs: slot.exposedUs }));
    answer(response, 200, { epochMs, holds } satisfies HoldTrace);
  }

  stats(response: ServerResponse): void {
    answer(response, 200, { held: this.#slots.held, calls: this.#holds.length });
  }

  /** Calls stay held; the record begins again. */
  reset(): void {
    this.#holds.length = 0;
  }
}
