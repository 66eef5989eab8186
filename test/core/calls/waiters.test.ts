import { describe, expect, it } from 'vitest';
import { Waiters } from '../../../src/core/calls/waiters.ts';
import { FakeClock } from '../../../src/testing/index.ts';
import { outcome } from '../support/governed.ts';

/** A clock whose timers fire after an hour at the latest, as a platform's do after some weeks. */
class ShortTimers extends FakeClock {
  override timer(delayMs: number, callback: () => void): () => void {
    return super.timer(Math.min(delayMs, 3_600_000), callback);
  }
}

describe('a sleep', () => {
  it('ends when its time has come, and tells how late that is', async () => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 10);
    const sleep = waiters.sleep(clock.monoMs() + 100, undefined);
    clock.block(130);
    await clock.advance(0);
    expect(await sleep).toBe(30);
  });

  it('of a time that has passed ends at once', async () => {
    const clock = new FakeClock();
    const sleep = new Waiters(clock, 10).sleep(clock.monoMs() - 5, undefined);
    await clock.advance(0);
    expect(await sleep).toBe(5);
  });

  it('is as long as it must be, though timers are cut short', async () => {
    const clock = new ShortTimers();
    const sleep = outcome(new Waiters(clock, 10).sleep(clock.monoMs() + 30 * 86_400_000, undefined));
    await clock.advance(30 * 86_400_000 - 1);
    expect(sleep.state).toBe('pending');
    await clock.advance(1);
    expect(sleep).toEqual({ state: 'resolved', value: 0 });
    expect(clock.pending).toBe(0);
  });

  it('ends once only, whatever comes after', async () => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 10);
    const abort = new AbortController();
    const sleep = outcome(waiters.sleep(clock.monoMs() + 100, abort.signal));
    await clock.advance(100);
    abort.abort();
    await waiters.endAll('closed');
    await clock.advance(1_000);
    expect(sleep).toEqual({ state: 'resolved', value: 0 });
  });

  it('does not begin after its signal has aborted, nor after all were ended', async () => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 10);
    await expect(waiters.sleep(clock.monoMs() + 1, AbortSignal.abort('over'))).rejects.toBe('over');
    await waiters.endAll('closed');
    await expect(waiters.sleep(clock.monoMs() + 1, undefined)).rejects.toBe('closed');
    expect(clock.pending).toBe(0);
  });
});

describe('sleeps that are ended together', () => {
  it.each(['by closing', 'by their signal'])('%s end newest first', async (how) => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 10);
    const abort = new AbortController();
    const order: number[] = [];
    for (let n = 0; n < 5; n++) {
      waiters.sleep(clock.monoMs() + 100 - n, abort.signal).catch(() => order.push(n));
    }
    if (how === 'by closing') await waiters.endAll('closed');
    else abort.abort();
    await clock.advance(0);
    expect(order).toEqual([4, 3, 2, 1, 0]);
    expect(clock.pending).toBe(0);
  });

  it('leave no listener on a signal that lives on', async () => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 10);
    const { signal } = new AbortController();
    const listeners = new Set<unknown>();
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners.add(args[1]);
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners.delete(args[1]);
      remove(...args);
    };
    const sleeps = Array.from({ length: 3 }, (_, n) => waiters.sleep(clock.monoMs() + n, signal));
    expect(listeners.size).toBe(1);
    await clock.advance(10);
    await Promise.all(sleeps);
    expect(listeners.size).toBe(0);
    // And the next sleep of the same signal is listened to again.
    const next = outcome(waiters.sleep(clock.monoMs() + 1_000, signal));
    expect(listeners.size).toBe(1);
    await waiters.endAll('closed');
    expect(listeners.size).toBe(0);
    expect(next.value).toBe('closed');
  });
});

describe('work that is tracked', () => {
  it('counts until it settles, and passes on how', async () => {
    const waiters = new Waiters(new FakeClock(), 2);
    let finish: () => void = () => {};
    const work = waiters.track(() => new Promise<string>((resolve) => (finish = () => resolve('done'))));
    await expect(waiters.track(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(waiters.count).toBe(1);
    finish();
    expect(await work).toBe('done');
    expect(waiters.count).toBe(0);
  });

  it('is refused over the bound without being begun', async () => {
    const waiters = new Waiters(new FakeClock(), 1);
    let finish: () => void = () => {};
    const work = waiters.track(() => new Promise<void>((resolve) => (finish = resolve)));
    let begun = false;
    await expect(waiters.track(async () => (begun = true))).rejects.toMatchObject({ maxWaiters: 1 });
    expect(begun).toBe(false);
    finish();
    await work;
  });

  it('is waited for when all is ended, also if it fails', async () => {
    const clock = new FakeClock();
    const waiters = new Waiters(clock, 2);
    const after: string[] = [];
    const work = waiters.track(async () => {
      await waiters.sleep(clock.monoMs() + 100, undefined).catch(() => {});
      await new Promise<void>((resolve) => setImmediate(resolve));
      after.push('handed back');
      throw new Error('ended');
    });
    const failed = expect(work).rejects.toThrow('ended');
    await waiters.endAll('closed');
    expect(after).toEqual(['handed back']);
    await failed;
  });
});
