import { describe, expect, it, onTestFinished } from 'vitest';
import type { Receipt } from '../../../src/core/decide/verdict.ts';
import { isGovernorClosedError } from '../../../src/core/errors.ts';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { governed, outcome } from '../support/governed.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('close', () => {
  it('rejects all who wait, and leaves no timer', async () => {
    const { governor, clock } = governed({
      calls: perSecond(10, { burst: 1 }),
      shop: perSecond(1, { burst: 1, by: 'shop' }),
    });
    const waits = Promise.allSettled(range(20).map(() => governor.wait()));
    await clock.advance(0);
    await governor.close();
    const results = await waits;
    expect(results[0]).toMatchObject({ status: 'fulfilled' });
    for (const result of results.slice(1)) {
      expect(result.status === 'rejected' && isGovernorClosedError(result.reason)).toBe(true);
      expect(result).toMatchObject({ reason: { governor: 'test' } });
    }
    expect([clock.pending, governor.waiting]).toEqual([0, 0]);
  });

  it('hands their reservations back newest first, before the store is closed', async () => {
    const { governor, clock, store } = governed({ calls: perSecond(10, { burst: 1 }) });
    const cancelled: [startUs: number, whole: boolean][] = [];
    const cancel = store.cancel.bind(store);
    store.cancel = async (receipt: Receipt) => {
      const whole = await cancel(receipt);
      cancelled.push([receipt.startUs, whole]);
      return whole;
    };
    const waits = Promise.allSettled(range(10).map(() => governor.wait()));
    await clock.advance(0);
    await governor.close();
    await waits;
    expect(cancelled.map(([, whole]) => whole)).toEqual(range(9).map(() => true));
    const starts = cancelled.map(([startUs]) => startUs);
    expect(starts).toEqual([...starts].sort((a, b) => b - a));
  });

  // A wait whose answer is still under way begins its sleep only after all sleeps were ended.
  it('ends a wait that the store is deciding at that moment', async () => {
    const { governor, clock } = governed({ calls: perHour(1, { burst: 1 }) });
    await governor.allow();
    const wait = outcome(governor.wait());
    const closed = outcome(governor.close());
    await clock.advance(0);
    expect(closed.state).toBe('resolved');
    expect(wait.state).toBe('rejected');
    expect(isGovernorClosedError(wait.value)).toBe(true);
  });

  it('ends waits for slots', async () => {
    const { governor, clock } = governed({
      all: perSecond(1_000),
      shop: perHour(1, { burst: 1, by: 'shop' }),
    });
    const waits = range(3).map(() => outcome(governor.wait()));
    await clock.advance(0);
    await governor.close();
    expect(waits.map(({ state }) => state)).toEqual(['resolved', 'rejected', 'rejected']);
  });

  it('is the same however often it is called', async () => {
    const { governor } = governed({ calls: perSecond(10) });
    expect(governor.close()).toBe(governor.close());
    await governor.close();
  });

  it('lets work that has started come to its end', async () => {
    const { governor, clock } = governed({ calls: perSecond(10) });
    let finish: (value: string) => void = () => {};
    const run = outcome(
      governor.run({}, () => {
        return new Promise<string>((resolve) => {
          finish = resolve;
        });
      }),
    );
    await clock.advance(0);
    await governor.close();
    expect(run.state).toBe('pending');
    finish('done');
    await clock.advance(0);
    expect(run).toEqual({ state: 'resolved', value: 'done' });
  });

  it('leaves no rejection without someone who handles it', async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', onUnhandled);
    onTestFinished(() => {
      process.off('unhandledRejection', onUnhandled);
    });
    const { governor, clock, store } = governed({ calls: perSecond(10, { burst: 1 }) });
    // Not even if nothing can be handed back.
    store.cancel = () => Promise.reject(new Error('store is away'));
    const abort = new AbortController();
    const waits = Promise.allSettled(
      range(5).map((n) => governor.wait(n % 2 ? { signal: abort.signal } : {})),
    );
    await clock.advance(0);
    abort.abort();
    await governor.close();
    await waits;
    await clock.advance(0);
    expect(unhandled).toEqual([]);
  });
});
