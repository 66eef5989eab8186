import { describe, expect, test, vi } from 'vitest';
import { Throttled } from '../../../src/core/downstream/throttled.ts';
import { InvalidOptionError, StoreUnavailableError } from '../../../src/core/errors.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed, outcome } from '../support/governed.ts';
import { processes } from '../support/processes.ts';

describe('what became of the work of a run', () => {
  const adaptive = { calls: perSecond(100, { adaptive: { min: 1, max: 200 } }) };

  test('is told to adaptive limits: how long it took, and whether it failed', async () => {
    const { governor, store, clock } = governed(adaptive);
    const report = vi.spyOn(store, 'report');
    const ran = outcome(
      governor.run({}, async () => {
        await new Promise<void>((resolve) => void clock.timer(40, resolve));
        throw new Error('the work failed');
      }),
    );
    await clock.advance(40 + 250);
    expect(ran.state).toBe('rejected');
    expect(report.mock.calls.map(([, calls]) => calls)).toMatchObject([
      { calls: 1, failed: 1, throttled: 0, latencySumUs: 40_000 },
    ]);
  });

  test('is told once if it is an InvalidOptionError of another call', async () => {
    const { governor, store, clock } = governed(adaptive);
    const report = vi.spyOn(store, 'report');
    const error = new InvalidOptionError('x', 'y', 'z');
    await expect(governor.run({}, () => Promise.reject(error))).rejects.toBe(error);
    await clock.advance(250);
    expect(report.mock.calls.map(([, calls]) => calls)).toMatchObject([{ calls: 1, failed: 1 }]);
  });

  test('is told to nobody where no limit is adaptive', async () => {
    const { governor, store, clock } = governed({ calls: perSecond(100) });
    const report = vi.spyOn(store, 'report');
    await governor.run({}, () => 1);
    expect(clock.pending).toBe(0);
    expect(report).not.toHaveBeenCalled();
  });
});

describe('Throttled, thrown by the work of a run', () => {
  const limits = { calls: perSecond(1_000, { burst: 100 }), shop: perSecond(100, { burst: 10, by: 'shop' }) };

  async function throttledBy(throttled: Throttled, keys = { shop: 'acme' }) {
    const { clock, start } = processes(limits, () => 0);
    const [governor, elsewhere] = [start(), start()];
    const ran = governor.run({ keys }, () => Promise.reject(throttled));
    await expect(ran).rejects.toBe(throttled);
    const allowed = async (shop: string) => (await elsewhere.allow({ keys: { shop } })).allowed;
    return { clock, allowed };
  }

  test('pauses the whole governor, in all processes', async () => {
    const { clock, allowed } = await throttledBy(new Throttled({ retryAfterMs: 2_000 }));
    expect([await allowed('acme'), await allowed('other')]).toEqual([false, false]);
    await clock.advance(3_100); // a pause costs half of its length, and the ramp takes a while for a token
    expect(await allowed('acme')).toBe(true);
  });

  test('pauses the keys that it names', async () => {
    const { clock, allowed } = await throttledBy(new Throttled({ retryAfter: '2', keys: { shop: 'acme' } }));
    expect([await allowed('acme'), await allowed('other')]).toEqual([false, true]);
    await clock.advance(3_100); // a pause costs half of its length, and the ramp takes a while for a token
    expect(await allowed('acme')).toBe(true);
  });

  test('with a date, or the longer of both', async () => {
    const { clock } = processes(limits);
    const retryAfter = new Date(clock.wallMs() + 5_000).toUTCString();
    const { clock: later, allowed } = await throttledBy(new Throttled({ retryAfterMs: 1_000, retryAfter }));
    await later.advance(4_900);
    expect(await allowed('acme')).toBe(false);
    await later.advance(1_000);
    expect(await allowed('acme')).toBe(true);
  });

  test.for<[string, Throttled]>([
    ['no time', new Throttled({})],
    ['a header that was missing', new Throttled({ retryAfter: null })],
    ['a header that cannot be read', new Throttled({ retryAfter: 'soon' })],
  ])('with %s pauses nothing', async ([, throttled]) => {
    const { allowed } = await throttledBy(throttled);
    expect(await allowed('acme')).toBe(true);
  });

  test('is told to adaptive limits as throttled, and at once', async () => {
    const { governor, store, clock } = governed({
      calls: perSecond(100, { adaptive: { min: 1, max: 200 } }),
    });
    const report = vi.spyOn(store, 'report');
    await expect(governor.run({}, () => Promise.reject(new Throttled({})))).rejects.toBeInstanceOf(Throttled);
    await clock.advance(0);
    expect(report.mock.calls.map(([, calls]) => calls)).toMatchObject([
      { calls: 1, failed: 0, throttled: 1 },
    ]);
  });

  test('of a store that is away is thrown all the same', async () => {
    const { governor, store } = governed(limits);
    vi.spyOn(store, 'pause').mockRejectedValue(new StoreUnavailableError('test', new Error('away')));
    const throttled = new Throttled({ retryAfterMs: 1_000 });
    await expect(governor.run({}, () => Promise.reject(throttled))).rejects.toBe(throttled);
  });

  // A pause that nobody keeps is what the downstream asked not to happen.
  test('with keys that no limit has is not swallowed without a pause', async () => {
    const { governor } = governed(limits);
    const throttled = new Throttled({ retryAfterMs: 60_000, keys: { shp: 'acme' } });
    const error = await governor.run({}, () => Promise.reject(throttled)).catch((thrown: Error) => thrown);
    const { allowed } = await governor.allow({ keys: { shop: 'acme' } });
    const told = error !== throttled || throttled.cause !== undefined;
    expect(told || !allowed).toBe(true);
  });
});
