import { describe, expect, it } from 'vitest';
import { deskOf } from '../../../src/core/calls/desk.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { excess } from '../../support/ledger.ts';
import { governed, outcome, startsOf } from '../support/governed.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const acme = { keys: { shop: 'acme' } };
const at = (starts: readonly { atMs: number }[]) => starts.map(({ atMs }) => atMs);

describe('wait', () => {
  it('resolves at once while there are tokens, with no wait', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 2 }) });
    expect([await governor.wait(), await governor.wait()]).toMatchObject([{ waitedMs: 0 }, { waitedMs: 0 }]);
    const third = governor.wait();
    await clock.advance(100);
    expect(await third).toMatchObject({ waitedMs: 100 });
  });

  it('lets waiters out in order, one at a time, at the rate', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    const { starts, done } = startsOf(clock, range(20), () => governor.wait());
    await clock.advance(1_900);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(range(20));
    expect(at(starts)).toEqual(range(20).map((n) => n * 100));
  });

  it('is never early where a token takes a fraction of a millisecond', async () => {
    const { governor, clock } = governed({ calls: perSecond(3_000, { burst: 2 }) });
    const { starts, done } = startsOf(clock, range(11), () => governor.wait());
    await clock.advance(10);
    await done;
    expect(at(starts)).toEqual([0, ...range(10).map((n) => Math.ceil((n * 1_000) / 3) / 1_000)]);
  });

  it('counts its waiters, and ends with none and no timer', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    const { done } = startsOf(clock, range(5), () => governor.wait());
    await clock.advance(0);
    expect([governor.waiting, clock.pending]).toEqual([4, 4]);
    await clock.advance(400);
    await done;
    expect([governor.waiting, clock.pending]).toEqual([0, 0]);
  });
});

// https://github.com/sidekiq/sidekiq/issues/5315: all who waited were told the same time, and the losers timed out.
it('gives a hundred concurrent waits a hundred times of their own, the last after n intervals', async () => {
  const { governor, clock } = governed({ calls: perSecond(50, { burst: 1 }) });
  const { starts, done } = startsOf(clock, range(100), () => governor.wait({ maxWaitMs: 1_980 }));
  await clock.advance(1_980);
  await done;
  expect(new Set(at(starts)).size).toBe(100);
  expect(starts.at(-1)!.atMs).toBe(99 * 20);
});

describe('waiters of one key', () => {
  const limits = {
    all: perSecond(10_000, { burst: 10_000 }),
    shop: perSecond(10, { burst: 1, by: 'shop' }),
  };

  // They cannot reserve, since that would idle all other keys; they wait for their slots.
  it('come out one by one and in order, a thousand of them', async () => {
    const { governor, clock } = governed(limits);
    const { starts, done } = startsOf(clock, range(1_000), () => governor.wait(acme));
    await clock.advance(99_900);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(range(1_000));
    expect(at(starts)).toEqual(range(1_000).map((n) => n * 100));
  });

  it('do not make another key wait', async () => {
    const { governor, clock } = governed(limits);
    const { done } = startsOf(clock, range(100), () => governor.wait(acme));
    await clock.advance(0);
    expect(await governor.wait({ keys: { shop: 'other' } })).toMatchObject({ waitedMs: 0 });
    await clock.advance(9_900);
    await done;
  });

  // https://github.com/jhurliman/node-rate-limiter/issues/50, https://github.com/jhurliman/node-rate-limiter/pull/56
  it('of mixed costs keep their order: a large one is not starved by small ones', async () => {
    const { governor, clock } = governed({
      all: perSecond(1_000),
      shop: perSecond(10, { burst: 10, by: 'shop' }),
    });
    await governor.allowN(10, acme);
    const costs = [1, 10, 1, 1, 1, 1];
    const { starts, done } = startsOf(clock, costs, (cost) => governor.waitN(cost, acme));
    await clock.advance(10_000);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(costs);
    expect(at(starts).slice(0, 2)).toEqual([100, 1_100]);
  });

  it('let a large one in within two rounds of the line, while small ones come back for ever', async () => {
    const { governor, clock } = governed({
      all: perSecond(1_000),
      shop: perSecond(2, { burst: 10, by: 'shop' }),
    });
    let over = false;
    let tokens = 0;
    const waited: number[] = [];
    const loop = async (cost: number) => {
      while (!over) {
        const { waitedMs } = await governor.waitN(cost, acme);
        tokens += cost;
        if (cost === 10) waited.push(waitedMs);
      }
    };
    const loops = [loop(10), ...range(20).map(() => loop(1))].map((loop) => loop.catch(() => {}));
    await clock.advance(600_000);
    over = true;
    await governor.close();
    await Promise.all(loops);
    // A round is the line of all twenty, 10 s, and the large one's own 5 s.
    expect(Math.max(...waited)).toBeLessThanOrEqual(2 * 15_000);
    expect(waited.length).toBeGreaterThanOrEqual(600 / 30);
    // And no token is left lying.
    expect((tokens - 10) / (2 * 600)).toBeGreaterThan(0.98);
  });

  it('leave nothing behind them when all of them give up', async () => {
    const { governor, clock } = governed(limits);
    const abort = new AbortController();
    const waits = range(600).map(() => governor.wait({ ...acme, signal: abort.signal }));
    const settled = Promise.allSettled(waits);
    await clock.advance(0);
    abort.abort();
    await settled;
    // Their line is a minute long, and nobody in it is coming. Those who come now wait a second for it, not a minute.
    const { starts, done } = startsOf(clock, range(5), async (n) => {
      await new Promise<void>((resolve) => clock.timer(n * 400, resolve));
      await governor.wait(acme);
    });
    await clock.advance(70_000);
    await done;
    expect(Math.min(...at(starts))).toBeLessThanOrEqual(1_300);
  });
});

// https://github.com/jhurliman/node-rate-limiter/issues/50
it('bounds the wait of a large request among small ones that keep coming', async () => {
  const { governor, clock } = governed({ calls: perSecond(100, { burst: 20 }) });
  await governor.allowN(20);
  const { starts, done } = startsOf(clock, range(200), (n) => governor.waitN(n === 100 ? 20 : 1));
  await clock.advance(3_000);
  await done;
  // It has its start once it has asked: after those before it, and no other.
  expect(starts.findIndex(({ item }) => item === 100)).toBe(100);
  expect(starts[100]!.atMs).toBe(1_200);
});

describe('maxWaitMs', () => {
  it('takes nothing if the wait would be longer, and says at once when to come back', async () => {
    const { governor } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    await expect(governor.wait({ maxWaitMs: 99 })).rejects.toMatchObject({
      code: 'FLYBALL_WAIT_TOO_LONG',
      limit: 'calls',
      retryAfterMs: 100,
      maxWaitMs: 99,
    });
    expect(await governor.peek()).toMatchObject([{ granted: 1, waitMs: 100 }]);
  });

  it('waits as long as that, to the millisecond', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const wait = governor.wait({ maxWaitMs: 100 });
    await clock.advance(100);
    expect(await wait).toMatchObject({ waitedMs: 100 });
  });

  // https://github.com/sidekiq/sidekiq/issues/2616: a time-out between 0 and 1 gave an odd error.
  it('of less than a millisecond works', async () => {
    const { governor } = governed({ calls: perSecond(500, { burst: 1 }) });
    for (const maxWaitMs of [0, 0.5, 0.999]) {
      await governor.wait({ maxWaitMs }).catch(() => {});
      await expect(governor.wait({ maxWaitMs })).rejects.toMatchObject({ retryAfterMs: 2, maxWaitMs });
    }
    expect(await governor.peek()).toMatchObject([{ granted: 1 }]);
  });

  it('bounds the wait for a slot too, and then no place in the line is taken', async () => {
    const { governor } = governed({
      all: perSecond(1_000),
      shop: perSecond(10, { burst: 1, by: 'shop' }),
    });
    await governor.allow(acme);
    await expect(governor.wait({ ...acme, maxWaitMs: 99 })).rejects.toMatchObject({ retryAfterMs: 100 });
    expect(await governor.peek(acme)).toMatchObject([{}, { lineMs: 0 }]);
  });
});

describe('maxWaiters', () => {
  it('is an error at once for one more, which takes nothing', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) }, { maxWaiters: 3 });
    await governor.wait();
    const { done } = startsOf(clock, range(3), () => governor.wait());
    await expect(governor.wait()).rejects.toMatchObject({ code: 'FLYBALL_TOO_MANY_WAITERS', maxWaiters: 3 });
    await clock.advance(100);
    expect(governor.waiting).toBe(2);
    // One has left: there is room for one more, and only for one.
    const next = outcome(governor.wait());
    await expect(governor.wait()).rejects.toMatchObject({ code: 'FLYBALL_TOO_MANY_WAITERS' });
    await clock.advance(300);
    await done;
    expect(next.state).toBe('resolved');
    expect(await governor.peek()).toMatchObject([{ granted: 5 }]);
  });
});

describe('a process that was blocked', () => {
  it('does not let held calls out as a burst: those that are late ask again', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.wait();
    const { starts, done } = startsOf(clock, range(50), () => governor.wait());
    await clock.advance(0);
    // Fifty are held, due at 100, 200, … 5,000 ms. For two seconds nothing runs.
    clock.block(2_000);
    await clock.advance(20_000);
    await done;
    // Those due within the last 100 ms were in time; the other eighteen have lost their starts and come after all others.
    const late = at(starts).filter((atMs) => atMs === 2_000);
    expect(late.length).toBe(2);
    expect(starts.length).toBe(50);
    const found = excess(
      at(starts).map((atMs) => ({ atUs: atMs * 1_000, cost: 1 })),
      1n,
      100_000n,
      // A start may be met up to graceMs late: one more token at this rate.
      2n,
    );
    expect(found.worst! <= 0n).toBe(true);
    expect(at(starts).at(-1)).toBe(5_000 + 18 * 100);
  });

  it.each([
    [100, 1, 'has met it'],
    [101, 2, 'has lost it, and takes another'],
  ])('starts a call that wakes %d ms after its start, which %s', async (lateMs, granted) => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const { starts, done } = startsOf(clock, [0], () => governor.wait());
    await clock.advance(0);
    clock.block(100 + lateMs);
    await clock.advance(0);
    await done;
    // The bucket has filled meanwhile, so that the other one is there at once.
    expect(at(starts)).toEqual([100 + lateMs]);
    expect(await governor.peek()).toMatchObject([{ granted: 1 + granted }]);
  });

  it('need not stand in line again: who has lost his start comes back, and is not new', async () => {
    const { governor, clock } = governed({ shop: perSecond(10, { burst: 1, by: 'shop' }) });
    await governor.allow(acme);
    const { starts, done } = startsOf(clock, [0], () => governor.wait(acme));
    await clock.advance(0);
    const other = deskOf(governor)
      .attempts()
      .begin({ ...acme, cost: 1 });
    for (let n = 0; n < 5; n++) await other.ask({ maxWaitMs: 0, turns: 'keyed' });
    expect(await governor.peek(acme)).toMatchObject([{ lineMs: 700 }]);
    clock.block(250);
    await clock.advance(0);
    await done;
    expect(at(starts)).toEqual([250]);
  });

  it('is late by the governor’s own graceMs', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) }, { graceMs: 1_000 });
    await governor.wait();
    const { starts, done } = startsOf(clock, range(5), () => governor.wait());
    await clock.advance(0);
    clock.block(900);
    await clock.advance(0);
    await done;
    expect(at(starts)).toEqual([900, 900, 900, 900, 900]);
  });

  it('tells a call whose time is over that it was, rather than start it', async () => {
    const { governor, clock } = governed({ calls: perSecond(1, { burst: 1 }) });
    await governor.wait();
    const waits = range(3).map(() => outcome(governor.wait({ maxWaitMs: 3_000 })));
    await clock.advance(0);
    clock.block(2_950);
    await clock.advance(1_000);
    expect(waits.map(({ state }) => state)).toEqual(['rejected', 'rejected', 'resolved']);
    expect(waits[0]!.value).toMatchObject({ code: 'FLYBALL_WAIT_TOO_LONG', maxWaitMs: 3_000 });
  });
});

// https://github.com/redisson/redisson/issues/1524, https://github.com/redisson/redisson/issues/1659: the second acquire hung.
it('resolves each of a loop of waits at its computed time', async () => {
  const { governor, clock } = governed({
    calls: perSecond(10, { burst: 1 }),
    hourly: perHour(100, { burst: 100 }),
  });
  const waited: number[] = [];
  const loop = (async () => {
    for (let n = 0; n < 100; n++) waited.push((await governor.wait()).waitedMs);
  })();
  await clock.advance(9_900);
  await loop;
  expect(waited).toEqual([0, ...Array.from({ length: 99 }, () => 100)]);
});
