import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed } from '../support/governed.ts';

describe('allowAtMost', () => {
  test('takes as many whole tokens as there are, and leaves a fraction where it is', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) });
    expect(await governor.allowAtMost(3)).toBe(3);
    expect(await governor.allowAtMost(3)).toBe(2);
    expect(await governor.allowAtMost(3)).toBe(0);
    await clock.advance(250);
    expect(await governor.allowAtMost(9)).toBe(2);
    await clock.advance(50);
    expect(await governor.allowAtMost(9)).toBe(1);
  });

  test('takes from each limit as many as the scarcest has', async () => {
    const { governor } = governed({
      calls: perSecond(10, { burst: 10 }),
      shop: perSecond(10, { burst: 4, by: 'shop' }),
      day: { kind: 'window', max: 7, windowMs: 86_400_000 },
    });
    expect(await governor.allowAtMost(9, { keys: { shop: 'acme' } })).toBe(4);
    expect(await governor.allowAtMost(9, { keys: { shop: 'other' } })).toBe(3);
    expect(await governor.allowAtMost(9, { keys: { shop: 'third' } })).toBe(0);
    expect(await governor.peek({ keys: { shop: 'third' } })).toMatchObject([
      { limit: 'calls', remaining: 3 },
      { limit: 'shop', remaining: 4 },
      { limit: 'day', remaining: 0 },
    ]);
  });

  test('takes nothing of what is kept for the more urgent', async () => {
    const { governor } = governed({
      calls: perSecond(10, { burst: 10, reserve: { high: 0.2, normal: 0.3 } }),
    });
    expect(await governor.allowAtMost(10, { priority: 'low' })).toBe(5);
    expect(await governor.allowAtMost(10)).toBe(3);
    expect(await governor.allowAtMost(10, { priority: 'high' })).toBe(2);
  });

  test('takes nothing in a pause', async () => {
    const { governor } = governed({ calls: perSecond(10, { burst: 5 }) });
    await governor.pause();
    expect(await governor.allowAtMost(5)).toBe(0);
  });

  test.for([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', undefined])(
    '%s is refused',
    async (most) => {
      const { governor } = governed({ calls: perSecond(10, { burst: 5 }) });
      await expect(governor.allowAtMost(most as number)).rejects.toMatchObject({
        code: 'FLYBALL_INVALID_OPTION',
        option: 'most',
      });
      expect(await governor.allowAtMost(9)).toBe(5);
    },
  );

  test('with a concurrency limit is refused: there would be no grant to give the slots back', async () => {
    const { governor } = governed({ calls: perSecond(10), work: { kind: 'concurrency', max: 3 } });
    await expect(governor.allowAtMost(1)).rejects.toMatchObject({ code: 'FLYBALL_INVALID_OPTION' });
    expect(await governor.peek()).toMatchObject([{ remaining: 10 }, { remaining: 3 }]);
  });

  test('after close rejects', async () => {
    const { governor } = governed({ calls: perSecond(10) });
    await governor.close();
    await expect(governor.allowAtMost(1)).rejects.toMatchObject({ code: 'FLYBALL_GOVERNOR_CLOSED' });
  });
});
