import { describe, expect, test, vi } from 'vitest';
import { LeaseKeeper } from '../../../src/core/calls/lease-keeper.ts';
import { demandsOf } from '../../../src/core/decide/demands.ts';
import type { HeldSlot } from '../../../src/core/decide/give-back.ts';
import { parseLimits } from '../../../src/core/limits/limit.ts';
import { FakeClock } from '../../../src/testing/index.ts';

const LEASE_MS = 3_000;
const [demand] = demandsOf(
  parseLimits({ work: { kind: 'concurrency', max: 1, leaseMs: LEASE_MS } }),
  1,
  undefined,
);
const slot = { demand, holder: 'job', fence: 1 } as HeldSlot;
const HELD_US = LEASE_MS * 1_000;

type Renew = (atMs: number) => Promise<number>;

/** A keeper of one slot whose store answers as told; `asked` are the times of its renewals, from the grant on. */
function kept(renew: Renew, { grantedMsAgo = 0 } = {}) {
  const clock = new FakeClock();
  const beganMs = clock.monoMs() - grantedMsAgo;
  const asked: number[] = [];
  const keeper = new LeaseKeeper(
    {
      renew: () => {
        asked.push(Math.round(clock.monoMs() - beganMs));
        return renew(asked.at(-1)!);
      },
    },
    clock,
  );
  const lostAt: number[] = [];
  const lost = vi.fn(() => void lostAt.push(Math.round(clock.monoMs() - beganMs)));
  const stop = keeper.keep(slot, beganMs, lost);
  return { clock, keeper, asked, lost, lostAt, stop };
}

const held: Renew = async () => HELD_US;
const away: Renew = async () => {
  throw new Error('the store is away');
};

describe('a slot that is kept', () => {
  test('is renewed at each third of its lease', async () => {
    const { clock, asked, lost } = kept(held);
    await clock.advance(2 * LEASE_MS);
    expect(asked).toEqual([1_000, 2_000, 3_000, 4_000, 5_000, 6_000]);
    expect(lost).not.toHaveBeenCalled();
  });

  test('is renewed by when it was asked for, however late the answer came', async () => {
    const { clock, asked } = kept(held, { grantedMsAgo: 400 });
    await clock.advance(600);
    expect(asked).toEqual([1_000]);
  });

  test('is renewed at once if the answer came later than that', async () => {
    const { clock, asked } = kept(held, { grantedMsAgo: 2_500 });
    await clock.advance(0);
    expect(asked).toEqual([2_500]);
  });

  test('that is lost is told of once, and kept no longer', async () => {
    const { clock, keeper, asked, lostAt } = kept(async (atMs) => (atMs < 2_000 ? HELD_US : 0));
    await clock.advance(10 * LEASE_MS);
    expect(lostAt).toEqual([2_000]);
    expect(asked).toEqual([1_000, 2_000]);
    expect([keeper.count, clock.pending]).toEqual([0, 0]);
  });

  test('is tried again at a tenth of the lease while the store is away', async () => {
    const { clock, asked, lost } = kept((atMs) => (atMs < 1_600 ? away(atMs) : held(atMs)));
    await clock.advance(LEASE_MS);
    expect(asked).toEqual([1_000, 1_300, 1_600, 2_600]);
    expect(lost).not.toHaveBeenCalled();
  });

  test('is given up when its lease is over and the store still away, a tenth of a lease late at the most', async () => {
    const { clock, keeper, lostAt, asked } = kept(away);
    await clock.advance(10 * LEASE_MS);
    expect(lostAt).toHaveLength(1);
    expect(lostAt[0]).toBeGreaterThanOrEqual(LEASE_MS);
    expect(lostAt[0]).toBeLessThanOrEqual(LEASE_MS * 1.1);
    expect(asked.at(-1)).toBeLessThanOrEqual(lostAt[0]!);
    expect([keeper.count, clock.pending]).toEqual([0, 0]);
  });

  test('counts its lease from when the last renewal was sent, not from its answer', async () => {
    const clock = new FakeClock();
    const beganMs = clock.monoMs();
    const answers: ((us: number) => void)[] = [];
    let isAway = false;
    const renew = () => (isAway ? away(0) : new Promise<number>((resolve) => void answers.push(resolve)));
    const lostAt: number[] = [];
    new LeaseKeeper({ renew }, clock).keep(slot, beganMs, () => void lostAt.push(clock.monoMs() - beganMs));
    await clock.advance(1_000);
    isAway = true;
    await clock.advance(1_900);
    answers[0]!(HELD_US);
    await clock.advance(10 * LEASE_MS);
    expect(lostAt).toHaveLength(1);
    expect(lostAt[0]).toBeGreaterThanOrEqual(1_000 + LEASE_MS);
    expect(lostAt[0]).toBeLessThanOrEqual(1_000 + LEASE_MS * 1.1);
  });

  test.for<[string, number, number[]]>([
    ['shorter', 600, [1_000, 1_200, 1_400]],
    ['longer', 30_000, [1_000, 11_000, 21_000]],
  ])(
    'follows a lease that was made %s: the renewal tells for how long it holds',
    async ([, leaseMs, due]) => {
      const { clock, asked, lost } = kept(async () => leaseMs * 1_000);
      await clock.advance(due.at(-1)!);
      expect(asked).toEqual(due);
      expect(lost).not.toHaveBeenCalled();
    },
  );

  test('whose lease was made shorter is given up by the new length', async () => {
    const { clock, lostAt } = kept((atMs) => (atMs === 1_000 ? Promise.resolve(600_000) : away(atMs)));
    await clock.advance(10 * LEASE_MS);
    expect(lostAt).toHaveLength(1);
    expect(lostAt[0]).toBeGreaterThanOrEqual(1_600);
    expect(lostAt[0]).toBeLessThanOrEqual(1_660);
  });

  test.for<[string, number, number[]]>([
    ['is kept on if the store still holds it', HELD_US, []],
    ['is lost if the store does not', 0, [100_000]],
  ])('in a process that was frozen %s', async ([, answerUs, lost]) => {
    const { clock, asked, lostAt } = kept(async () => answerUs);
    clock.block(100_000);
    await clock.advance(0);
    expect(asked).toEqual([100_000]);
    expect(lostAt).toEqual(lost);
  });
});

describe('the keeping ends', () => {
  test('when it is stopped: the slot is neither renewed nor lost', async () => {
    const { clock, keeper, asked, lost, stop } = kept(held);
    await clock.advance(1_000);
    stop();
    stop();
    await clock.advance(10 * LEASE_MS);
    expect(asked).toEqual([1_000]);
    expect(lost).not.toHaveBeenCalled();
    expect([keeper.count, clock.pending]).toEqual([0, 0]);
  });

  test.for([0, HELD_US])(
    'when it is stopped during a renewal, whatever that answers (%i)',
    async (answerUs) => {
      let answer = (_us: number) => {};
      const { clock, lost, stop } = kept(() => new Promise((resolve) => (answer = resolve)));
      await clock.advance(1_000);
      stop();
      answer(answerUs);
      await clock.advance(10 * LEASE_MS);
      expect(lost).not.toHaveBeenCalled();
      expect(clock.pending).toBe(0);
    },
  );

  test('for all when it is closed, also for what is granted later', async () => {
    const { clock, keeper, asked, lost } = kept(held);
    keeper.keep({ ...slot, holder: 'other' }, clock.monoMs(), lost);
    expect(keeper.count).toBe(2);
    keeper.close();
    keeper.keep({ ...slot, holder: 'late' }, clock.monoMs(), lost)();
    keeper.keep({ ...slot, holder: 'later' }, clock.monoMs(), lost);
    await clock.advance(10 * LEASE_MS);
    expect(asked).toEqual([]);
    expect(lost).not.toHaveBeenCalled();
    expect([keeper.count, clock.pending]).toEqual([0, 0]);
  });
});
