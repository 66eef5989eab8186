import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Throttled } from '../../../src/core/downstream/throttled.ts';
import { InvalidOptionError, StoreUnavailableError } from '../../../src/core/errors.ts';
import { perMinute, perSecond } from '../../../src/core/limits/rate.ts';
import { governed, outcome } from '../support/governed.ts';

const slots = (max: number, leaseMs = 3_000) => ({ work: { kind: 'concurrency' as const, max, leaseMs } });
const remaining = async (governor: { peek(): Promise<{ remaining: number }[]> }) =>
  (await governor.peek()).map((limit) => limit.remaining);

/** Work that lasts until it is told to end. */
function work<T>(result?: T) {
  let end: (error?: Error) => void = () => {};
  const done = new Promise<T>((resolve, reject) => {
    end = (error) => (error === undefined ? resolve(result as T) : reject(error));
  });
  return { end, run: vi.fn(() => done) };
}

describe('run', () => {
  test('gives what the work returns, or throws what it throws; its tokens are spent either way', async () => {
    const { governor } = governed({ calls: perMinute(10, { burst: 10 }) });
    expect(await governor.run({}, () => 'sync')).toBe('sync');
    expect(await governor.run({ cost: 3 }, async (grant) => grant.waitedMs)).toBe(0);
    const error = new Error('the work failed');
    await expect(governor.run({ cost: 2 }, () => Promise.reject(error))).rejects.toBe(error);
    await expect(
      governor.run({}, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(await remaining(governor)).toEqual([10 - 1 - 3 - 2 - 1]);
  });

  test('waits as wait does', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const ran = governor.run({}, (grant) => grant.waitedMs);
    await clock.advance(100);
    expect(await ran).toBe(100);
    await expect(governor.run({ maxWaitMs: 10 }, () => 1)).rejects.toMatchObject({
      code: 'FLYBALL_WAIT_TOO_LONG',
    });
    const abort = new AbortController();
    const aborted = outcome(governor.run({ signal: abort.signal }, () => 1));
    abort.abort('enough');
    await clock.advance(0);
    expect(aborted).toMatchObject({ state: 'rejected', value: 'enough' });
  });

  test.for<[string, unknown, unknown]>([
    ['no work', {}, undefined],
    ['no options', undefined, () => 1],
    ['an unknown name', { costs: 1 }, () => 1],
    ['a settle that is none', { settle: 5 }, () => 1],
    ['a holder that is none', { holder: '' }, () => 1],
  ])('with %s is refused, and does nothing', async ([, options, work]) => {
    const { governor } = governed({ calls: perMinute(10, { burst: 10 }) });
    await expect(governor.run(options as object, work as () => number)).rejects.toMatchObject({
      code: 'FLYBALL_INVALID_OPTION',
    });
    expect(await remaining(governor)).toEqual([10]);
  });
});

describe('the slot of a run', () => {
  test('is held while it runs, and given back when it ends', async () => {
    const { governor } = governed(slots(1));
    const { end, run } = work('done');
    const ran = governor.run({}, run);
    await vi.waitFor(() => expect(run).toHaveBeenCalled());
    expect(await remaining(governor)).toEqual([0]);
    end();
    expect(await ran).toBe('done');
    expect(await remaining(governor)).toEqual([1]);
  });

  test.for<[string, unknown]>([
    ['an error', new Error('the work failed')],
    ['Throttled', new Throttled({})],
    ['an InvalidOptionError', new InvalidOptionError('x', 'y', 'z')],
    ['nothing', undefined],
  ])('is given back when the work throws %s', async ([, error]) => {
    const { governor } = governed(slots(1));
    await expect(
      governor.run({}, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(await remaining(governor)).toEqual([1]);
  });

  test('is renewed for as long as it runs', async () => {
    const { governor, clock, store } = governed(slots(1, 3_000));
    const renew = vi.spyOn(store, 'renew');
    const { end, run } = work();
    const ran = governor.run({}, run);
    await clock.advance(60_000);
    expect(await governor.allow()).toMatchObject({ allowed: false, reason: 'concurrency' });
    expect(renew).toHaveBeenCalledTimes(60);
    end();
    await ran;
    expect(await governor.allow()).toMatchObject({ allowed: true });
    await governor.close();
  });

  test('is kept also when its lease is made shorter while it runs', async () => {
    const { governor, clock } = governed(slots(1, 30_000));
    const { end, run } = work();
    let signal: AbortSignal | undefined;
    const ran = governor.run({}, (grant) => {
      signal = grant.signal;
      return run();
    });
    await clock.advance(5_000);
    await governor.configure({ limits: slots(1, 1_000) });
    for (let second = 0; second < 60; second++) {
      await clock.advance(1_000);
      expect(await governor.allow()).toMatchObject({ allowed: false });
    }
    expect(signal?.aborted).toBe(false);
    end();
    await ran;
  });

  test('that is lost tells the work by its signal; what it returns is still returned', async () => {
    const { governor, clock } = governed(slots(1, 3_000));
    const { end, run } = work('late');
    let signal: AbortSignal | undefined;
    const ran = governor.run({}, (grant) => {
      signal = grant.signal;
      return run();
    });
    await clock.advance(0);
    clock.block(10_000);
    const second = await governor.allow();
    expect(second).toMatchObject({ allowed: true });
    await clock.advance(0);
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toBeInstanceOf(Error);
    end();
    expect(await ran).toBe('late');
    // It gave back nothing of the one who has it now.
    expect(await remaining(governor)).toEqual([0]);
    expect(second.allowed && (await second.release())).toBe(true);
  });

  test('is not lost because the limit is taken away', async () => {
    const { governor, clock } = governed({ calls: perSecond(100) });
    await governor.configure({ limits: slots(1, 1_000) });
    const { end, run } = work('done');
    let signal: AbortSignal | undefined;
    const ran = governor.run({}, (grant) => {
      signal = grant.signal;
      return run();
    });
    await clock.advance(500);
    await governor.reset();
    await clock.advance(5_000);
    expect(signal?.aborted).toBe(false);
    end();
    expect(await ran).toBe('done');
  });

  test('is had by one at a time, whatever the work does', async () => {
    const { governor, clock } = governed(slots(2));
    let running = 0;
    let most = 0;
    const done = Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        governor.run({}, async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => void clock.timer(100, resolve));
          running -= 1;
          if (n % 3 === 0) throw new Error('the work failed');
        }),
      ),
    );
    await clock.advance(1_000 + 20 * 10);
    const outcomes = await done;
    expect(most).toBe(2);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(7);
    expect(await remaining(governor)).toEqual([2]);
  });
});

describe('settle', () => {
  const limits = { calls: perMinute(100, { burst: 100 }) };
  const settle = ({ tokens }: { tokens: number }) => tokens;

  test('corrects the cost by what the result tells', async () => {
    const { governor } = governed(limits);
    expect(await governor.run({ cost: 50, settle }, () => ({ tokens: 20 }))).toEqual({ tokens: 20 });
    expect(await remaining(governor)).toEqual([80]);
    await governor.run({ cost: 10, settle }, () => ({ tokens: 40 }));
    expect(await remaining(governor)).toEqual([40]);
  });

  test('is not asked about work that failed: its estimate stays charged', async () => {
    const { governor } = governed(limits);
    const asked = vi.fn(() => 1);
    await expect(
      governor.run({ cost: 50, settle: asked }, () => Promise.reject(new Error())),
    ).rejects.toThrow();
    expect(asked).not.toHaveBeenCalled();
    expect(await remaining(governor)).toEqual([50]);
  });

  test('that the store does not take loses no result: the estimate stays charged', async () => {
    const { governor, store } = governed(limits);
    vi.spyOn(store, 'settle').mockRejectedValue(new StoreUnavailableError('test', new Error('away')));
    expect(await governor.run({ cost: 50, settle }, () => ({ tokens: 20 }))).toEqual({ tokens: 20 });
    expect(await remaining(governor)).toEqual([50]);
  });

  test('after the governor was closed loses no result', async () => {
    const { governor, clock } = governed(limits);
    const { end, run } = work({ tokens: 20 });
    const ran = governor.run({ cost: 50, settle }, run);
    await clock.advance(0);
    await governor.close();
    end();
    expect(await ran).toEqual({ tokens: 20 });
  });

  test.for<[string, () => number]>([
    ['returns no cost', () => Number.NaN],
    [
      'throws',
      () => {
        throw new Error('no usage in the reply');
      },
    ],
  ])(
    'that %s loses no result: people are warned, the slot is given back, the work told of once',
    async ([, settle]) => {
      const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
      onTestFinished(() => warn.mockRestore());
      const { governor, store, clock } = governed({
        work: { kind: 'concurrency', max: 2, adaptive: { min: 1, max: 10 } },
      });
      const report = vi.spyOn(store, 'report');
      expect(await governor.run({ settle }, () => 'result')).toBe('result');
      expect(warn.mock.calls).toEqual([[expect.stringMatching(/^governor "test": /), 'FlyballWarning']]);
      await clock.advance(1_000);
      expect(report.mock.calls.map(([, calls]) => calls)).toMatchObject([
        { calls: 1, failed: 0, throttled: 0 },
      ]);
      expect(await remaining(governor)).toEqual([2]);
    },
  );
});
