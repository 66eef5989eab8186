import type { Keys } from '../../../src/core/decide/demands.ts';
import type { LimitsOptions } from '../../../src/core/limits/limit.ts';
import { S, WAITING, World } from '../../support/world.ts';

/** Callers of one key that behave as calls of `waitN` do, each with another call as soon as one has started. */
export interface Party {
  readonly keys: Keys;
  /** How many calls wait at once. */
  readonly callers: number;
  /** They come and go at these times; default: they are there all the time. */
  readonly fromUs?: number;
  readonly untilUs?: number;
  /** How many calls a second there are at the most; default: without end. */
  readonly perSecond?: number;
  readonly cost?: number;
  readonly priority?: 0 | 1 | 2;
}

export interface Started {
  readonly atUs: number;
  readonly party: number;
  readonly cost: number;
  readonly calledUs: number;
}

const FOR_EVER = Number.POSITIVE_INFINITY;
/** From the store to the process and back. */
const TRIP_US = 500;

interface Caller {
  readonly party: number;
  readonly calledUs: number;
  readonly returning: boolean;
}

/** Lets callers ask, sleep until they are told to come back, and ask again; on a clock of its own. @returns what started, in order. */
export function simulate(limits: LimitsOptions, parties: readonly Party[], lengthUs: number): Started[] {
  const world = new World(limits);
  const starts: Started[] = [];
  const agenda = new Agenda<Caller>();
  const nextCallUs = parties.map(({ fromUs = 0 }) => fromUs);

  const call = (party: number, nowUs: number) => {
    const { perSecond, untilUs = FOR_EVER } = parties[party]!;
    const atUs = Math.max(nowUs, nextCallUs[party]!);
    if (perSecond !== undefined) nextCallUs[party] = atUs + S / perSecond;
    if (atUs < untilUs) agenda.add(atUs, { party, calledUs: atUs, returning: false });
  };
  for (const [party, { callers }] of parties.entries()) for (let n = 0; n < callers; n++) call(party, n);

  for (let due = agenda.next(lengthUs); due !== undefined; due = agenda.next(lengthUs)) {
    const { atUs, item } = due;
    const { keys, cost = 1, priority = 1, untilUs = FOR_EVER } = parties[item.party]!;
    if (atUs >= untilUs) continue;
    const verdict = world.acquire(Math.floor(atUs), {
      ...WAITING,
      keys,
      cost,
      priority,
      returning: item.returning,
    });
    if (verdict.granted) {
      const startUs = atUs + verdict.waitUs;
      starts.push({ atUs: startUs, party: item.party, cost, calledUs: item.calledUs });
      call(item.party, startUs + TRIP_US);
    } else {
      const sleepUs = Math.ceil(verdict.waitUs / 1_000) * 1_000;
      agenda.add(atUs + sleepUs + TRIP_US, { ...item, returning: item.returning || verdict.hasTurn });
    }
  }
  return starts.filter(({ atUs }) => atUs < lengthUs).sort((a, b) => a.atUs - b.atUs);
}

/** What is to happen, in order of time. */
class Agenda<T> {
  readonly #heap: { readonly atUs: number; readonly item: T }[] = [];

  add(atUs: number, item: T): void {
    const heap = this.#heap;
    heap.push({ atUs, item });
    for (let at = heap.length - 1; at > 0; ) {
      const above = (at - 1) >> 1;
      if (heap[above]!.atUs <= heap[at]!.atUs) break;
      [heap[above], heap[at]] = [heap[at]!, heap[above]!];
      at = above;
    }
  }

  next(beforeUs: number): { readonly atUs: number; readonly item: T } | undefined {
    const heap = this.#heap;
    if (heap.length === 0 || heap[0]!.atUs >= beforeUs) return undefined;
    const first = heap[0];
    const last = heap.pop()!;
    if (heap.length > 0) heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && heap[below]!.atUs < heap[least]!.atUs) least = below;
      }
      if (least === at) return first;
      [heap[least], heap[at]] = [heap[at]!, heap[least]!];
      at = least;
    }
  }
}

/** Cost that started from one time to another, for each party. */
export function costsOf(starts: readonly Started[], parties: number, fromUs: number, toUs: number): number[] {
  const costs = new Array<number>(parties).fill(0);
  for (const { atUs, party, cost } of starts) if (atUs >= fromUs && atUs < toUs) costs[party]! += cost;
  return costs;
}
