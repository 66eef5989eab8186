import { describe, expect, test } from 'vitest';
import type { Reservation } from '../../../src/core/answers.ts';
import type { Governor } from '../../../src/core/governor.ts';
import type { ColdStart } from '../../../src/core/limits/governor-options.ts';
import { perSecond, type RateLimitOptions } from '../../../src/core/limits/rate.ts';
import { type Start, worstExcess } from '../../support/ledger.ts';

export interface Attacked {
  readonly governor: Governor;
  /** The governor's own clock. */
  monoMs(): number;
  /** Is called back by that clock. */
  sleep(ms: number): Promise<unknown>;
  /** Lets so much time go by. */
  pass(ms: number): Promise<unknown>;
}

export interface AttackedOptions {
  readonly limits: { readonly calls: RateLimitOptions };
  readonly coldStart?: ColdStart;
}

const BURST = 5;
const FAST = perSecond(50, { burst: BURST });
const SLOW = perSecond(20, { burst: BURST });

/**
 * Attacks on the guarantee, through the public governor: whatever is asked, given up or changed, what starts keeps the bound.
 *
 * @param lateMs - How late a start may be seen.
 */
export function attacks(make: (options: AttackedOptions) => Attacked, lateMs = 0): void {
  const expectBound = (starts: readonly Start[], limit: RateLimitOptions, more = 0) =>
    expect(worstExcess(starts, limit)).toBeLessThanOrEqual(more + (limit.rate * lateMs) / 1_000);

  function attacker(calls: RateLimitOptions, coldStart: ColdStart = 'full') {
    const { governor, monoMs, sleep, pass } = make({ limits: { calls }, coldStart });
    const starts: Start[] = [];
    const book = (atMs: number, cost: number) => {
      starts.push({ atUs: Math.floor(atMs * 1_000), cost });
    };
    const holders: Promise<void>[] = [];
    /** Reservations, each with a holder that starts its work when the time has come, if it still may. */
    const reserve = async (count: number) => {
      const made: Reservation[] = [];
      for (let n = 0; n < count; n++) {
        const reservation = await governor.reserve();
        if (!reservation.allowed) continue;
        made.push(reservation);
        holders.push(hold(reservation));
      }
      return made;
    };
    const given = new Set<Reservation>();
    const hold = async (reservation: Reservation) => {
      await sleep(Math.max(0, reservation.startsAtMonoMs - monoMs()));
      if (!given.has(reservation) && reservation.stands()) book(monoMs(), 1);
    };
    const cancel = async (reservation: Reservation) => {
      given.add(reservation);
      await reservation.cancel();
    };
    /** Waits that start their work as soon as they are let. */
    const wait = (count: number, signal?: AbortSignal) => {
      for (let n = 0; n < count; n++) {
        const start = () => book(monoMs(), 1);
        holders.push(governor.wait(signal && { signal }).then(start, () => {}));
      }
    };
    /** Lets so much time go by, in which all who wait or hold come to their start. */
    const finish = async (ms: number) => {
      await pass(ms);
      await Promise.all(holders);
    };
    return { governor, monoMs, pass, starts, book, reserve, cancel, wait, finish };
  }

  describe('the bound holds for all that starts', () => {
    test('when a pause is ended early under a backlog', async () => {
      const { governor, starts, reserve, wait, pass, finish } = attacker(FAST);
      await reserve(100);
      await governor.pause({ forMs: 5_000 });
      await pass(50);
      await governor.resume();
      wait(60);
      await finish(4_000);
      expect(starts.length).toBeGreaterThanOrEqual(60);
      expectBound(starts, FAST);
    });

    test('when a pause is ended early, and others take all there is', async () => {
      const { governor, starts, reserve, pass, finish, book, monoMs } = attacker(FAST);
      await reserve(100);
      await governor.pause({ forMs: 5_000 });
      await governor.resume();
      for (const endsMs = monoMs() + 2_500; monoMs() < endsMs; await pass(10)) {
        const taken = await governor.allowAtMost(10);
        if (taken > 0) book(monoMs(), taken);
      }
      await finish(0);
      expect(starts.length).toBeGreaterThanOrEqual(60);
      expectBound(starts, FAST);
    });

    test('when the limit is lowered under a backlog, and what is asked for then keeps the new one', async () => {
      const { governor, starts, reserve, wait, pass, finish, monoMs } = attacker(FAST);
      await reserve(100);
      wait(20);
      await pass(50);
      await governor.configure({ limits: { calls: SLOW } });
      const changedMs = monoMs();
      wait(20);
      await finish(6_000);
      expectBound(starts, FAST);
      const later = starts.filter(({ atUs }) => atUs > (changedMs + 1_000 + lateMs) * 1_000);
      expect(later.length).toBeGreaterThanOrEqual(20);
      expectBound(later, SLOW);
    });

    test('when the limit is raised under a backlog, but for what was promised for the next second', async () => {
      const { governor, starts, reserve, wait, pass, finish } = attacker(SLOW);
      await reserve(60);
      wait(20);
      await pass(50);
      await governor.configure({ limits: { calls: FAST } });
      wait(60);
      await finish(5_000);
      expect(starts.length).toBeGreaterThanOrEqual(80);
      expectBound(starts, FAST, 20);
    });

    test.each([
      ['newest', true],
      ['oldest', false],
    ])('when reservations are cancelled, the %s first, and others are made', async (_, newestFirst) => {
      const { starts, reserve, cancel, wait, finish } = attacker(FAST);
      const made = await reserve(60);
      const cancelled = [...made.slice(20, 30), ...made.slice(40)];
      for (const reservation of newestFirst ? cancelled.reverse() : cancelled) await cancel(reservation);
      wait(40);
      await finish(4_000);
      expect(starts.length).toBeGreaterThanOrEqual(60);
      expectBound(starts, FAST);
    });

    test('when grants are settled for less than was taken', async () => {
      const { governor, starts, monoMs, pass, book } = attacker(FAST);
      for (const endsMs = monoMs() + 2_000; monoMs() < endsMs; ) {
        const grant = await governor.allowN(4);
        if (!grant.allowed) await pass(5);
        else {
          await grant.settle(1);
          book(monoMs(), 1);
        }
      }
      // What is given back is used: a token costs one, not four.
      expect(starts.length).toBeGreaterThan(50);
      expectBound(starts, FAST);
    });

    test('when every other wait is given up', async () => {
      const { starts, wait, pass, finish } = attacker(FAST);
      const gone = new AbortController();
      for (let n = 0; n < 60; n++) wait(1, n % 2 === 0 ? gone.signal : undefined);
      await pass(100);
      gone.abort();
      wait(30);
      await finish(3_000);
      expect(starts.length).toBeGreaterThanOrEqual(60);
      expectBound(starts, FAST);
    });

    test('when it begins with empty buckets: there is no burst', async () => {
      const { governor, starts, wait, finish, book, monoMs } = attacker(FAST, 'empty');
      book(monoMs(), BURST);
      await governor.limits();
      wait(30);
      await finish(1_500);
      expect(starts.length).toBe(31);
      expectBound(starts, FAST);
    });
  });
}
