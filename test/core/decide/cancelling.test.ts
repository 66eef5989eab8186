import { describe, expect, it } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { S, World } from '../../support/world.ts';

const world = () => new World({ calls: perSecond(10, { burst: 1 }) });

// https://github.com/golang/go/issues/56924, https://github.com/golang/go/issues/69419: after a middle one was cancelled too
// few tokens came back, or too many; https://github.com/thrasher-corp/gocryptotrader/pull/2363 had to work round it.
describe('of several reservations', () => {
  it('one in the middle that is cancelled is lost, and never given to two', () => {
    const calls = world();
    const [, middle, last] = [calls.reserve(0), calls.reserve(0), calls.reserve(0)];
    expect(calls.cancel(0, middle.receipt)).toBe(false);
    // The next one comes after the last, not into the gap beside it.
    expect(calls.reserve(0).startUs).toBe(0.3 * S);
    expect(last.startUs).toBe(0.2 * S);
  });

  it('the last that is cancelled is given back, and its start with it', () => {
    const calls = world();
    calls.reserve(0);
    const kept = calls.reserve(0);
    const last = calls.reserve(0);
    expect(calls.cancel(0, last.receipt)).toBe(true);
    expect(kept.startUs).toBe(0.1 * S);
    expect(calls.reserve(0).startUs).toBe(0.2 * S);
  });

  it('all that are cancelled newest first are given back, whatever they cost', () => {
    const calls = new World({ calls: perSecond(10, { burst: 5 }) });
    calls.acquire(0, { cost: 5 });
    const receipts = [3, 1, 5, 2, 4].map((cost) => calls.reserve(0, { cost }).receipt);
    for (const receipt of receipts.reverse()) expect(calls.cancel(0, receipt)).toBe(true);
    expect(calls.acquire(0)).toMatchObject({ granted: false, waitUs: 0.1 * S });
  });

  it('all but the newest are lost when they are cancelled oldest first', () => {
    const calls = world();
    calls.reserve(0);
    const receipts = Array.from({ length: 5 }, () => calls.reserve(0).receipt);
    expect(receipts.map((receipt) => calls.cancel(0, receipt))).toEqual([false, false, false, false, true]);
    expect(calls.reserve(0).startUs).toBe(0.5 * S);
  });

  // https://github.com/mvanhorn/cli-printing-press/pull/4441: the second of two cancels restored a slot given up before.
  it('one that was granted after a cancel keeps its start when an older one is cancelled', () => {
    const calls = world();
    calls.reserve(0);
    const first = calls.reserve(0);
    const second = calls.reserve(0);
    expect(calls.cancel(0, second.receipt)).toBe(true);
    const third = calls.reserve(0);
    expect(third.startUs).toBe(0.2 * S);
    expect(calls.cancel(0, first.receipt)).toBe(false);
    expect(calls.reserve(0).startUs).toBe(0.3 * S);
  });

  it('none is given back after something was forced', () => {
    const calls = world();
    calls.reserve(0);
    const last = calls.reserve(0);
    calls.force(0);
    expect(calls.cancel(0, last.receipt)).toBe(false);
    expect(calls.reserve(0).startUs).toBe(0.3 * S);
  });
});

it('gives back time that has not passed only: what drained meanwhile stays drained', () => {
  const calls = new World({ calls: perSecond(10, { burst: 10 }) });
  calls.acquire(0, { cost: 10 });
  const { startUs, receipt } = calls.reserve(0, { cost: 10 });
  expect(startUs).toBe(1 * S);
  expect(calls.cancel(0.6 * S, receipt)).toBe(true);
  // As if it had never been: six of the first ten have drained.
  expect(calls.peek(0.6 * S)).toMatchObject([{ remaining: 6, granted: 10 }]);
});

// https://github.com/xanzy/go-gitlab/pull/1837: a burst computed as a part of the rate was 0, and every wait failed.
it('needs no burst to be given for a rate below one', () => {
  const calls = new World({ calls: perSecond(0.33) });
  expect([calls.reserve(0).startUs, calls.reserve(0).startUs]).toEqual([0, 3_030_304]);
});
