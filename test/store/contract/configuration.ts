import { describe, expect, test } from 'vitest';
import { GovernorClosedError } from '../../../src/core/errors.ts';
import { type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { perSecond, type RateLimit } from '../../../src/core/limits/rate.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import type { Made, StoreOptions } from '../support/made.ts';
import { eventually } from '../support/stores.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from '../support/terms.ts';

const SECOND = 1_000_000;

/** What every store does with its configuration. `make` gives a store that nothing has happened to yet. */
export function configurationContract(make: (options: StoreOptions) => Made): void {
  async function started(options: Partial<StoreOptions> = {}) {
    const limits = { calls: perSecond(10, { burst: 5 }), shop: perSecond(2, { burst: 2, by: 'shop' }) };
    const made = make({ limits, ...options });
    await made.store.limits();
    const { store } = made;
    return {
      ...made,
      code: parseLimits(options.limits ?? limits),
      set: (changed: LimitsOptions, who = 'anna') => store.configure({ limits: parseLimits(changed) }, who),
      acquire: (cost: number) => store.acquire(ask({ calls: cost, shop: 0 }), AT_ONCE),
      remaining: async () => {
        const seen = await store.peek(ask(), NORMAL);
        return seen.filter(({ demand }) => demand.limit.name === 'calls').map(({ sight }) => sight.remaining);
      },
    };
  }

  test('what nobody has changed is code’s, at version 1, without a history', async () => {
    const { store, code } = await started();
    const configuration = await store.configuration();
    expect(configuration).toMatchObject({ version: 1, revision: 0, operator: [], history: [] });
    expect(configuration.limits).toEqual(code);
    expect(configuration.code).toEqual(code);
  });

  test('an operator’s limits are in force from the next decision on, over code’s of the same name', async () => {
    const { store, set, acquire, code } = await started();
    const fast = { calls: perSecond(100, { burst: 50 }) };
    expect(await set(fast)).toMatchObject({ version: 2, who: 'anna' });
    expect(await acquire(50)).toMatchObject({ granted: true, waitUs: 0 });
    const configuration = await store.configuration();
    expect(configuration.limits).toEqual([parseLimits(fast)[0], code[1]]);
    expect(configuration.code).toEqual(code);
    expect(configuration.operator).toEqual(parseLimits(fast));
    expect(await store.limits()).toEqual(configuration.limits);
  });

  test('a limit that code does not have comes last, and binds', async () => {
    const { store, set, acquire } = await started();
    await set({ day: perSecond(1, { burst: 3 }) });
    expect((await store.limits()).map(({ name }) => name)).toEqual(['calls', 'shop', 'day']);
    const request = ask({ calls: 4, shop: 0, day: 4 });
    await expect(store.acquire(request, AT_ONCE)).rejects.toMatchObject({ limit: 'day', burst: 3 });
    expect(await acquire(5)).toMatchObject({ granted: true });
  });

  test('slower limits do not find buckets empty that have filled since a pause of long ago', async () => {
    const { store, set, advanceUs } = await started({ limits: { calls: perSecond(10, { burst: 5 }) } });
    await store.pause(undefined, SECOND);
    advanceUs(3_600 * SECOND);
    await set({ daily: { rate: 24, periodMs: 86_400_000, burst: 24 } });
    const sights = await store.peek({ cost: 1, keys: undefined, holder: '' }, NORMAL);
    expect(sights.map(({ sight }) => sight.remaining)).toEqual([5, 24]);
  });

  test('but those of a pause that was lately are empty', async () => {
    const { store, set, advanceUs } = await started({ limits: { calls: perSecond(10, { burst: 5 }) } });
    await store.pause(undefined, SECOND);
    advanceUs(SECOND);
    await set({ daily: { rate: 24, periodMs: 86_400_000, burst: 24 } });
    const sights = await store.peek({ cost: 1, keys: undefined, holder: '' }, NORMAL);
    expect(sights.map(({ sight }) => sight.remaining)).toEqual([0, 0]);
  });

  test('a second change stands beside the first; the same again is no change', async () => {
    const { store, set } = await started();
    await set({ calls: perSecond(7, { burst: 7 }) });
    await set({ shop: perSecond(1, { burst: 1, by: 'shop' }) });
    const second = await set({ calls: perSecond(7, { burst: 7 }) }, 'ben');
    expect(second).toMatchObject({ version: 3, who: 'anna' });
    expect((second.operator as readonly RateLimit[]).map(({ name, burst }) => [name, burst])).toEqual([
      ['calls', 7],
      ['shop', 1],
    ]);
    expect((await store.configuration()).history).toHaveLength(2);
  });

  test('what was used stays used, in tokens, through changes and a reset', async () => {
    const { store, set, acquire, remaining } = await started();
    await acquire(4);
    await set({ calls: perSecond(3, { burst: 7 }) });
    expect(await remaining()).toEqual([3]);
    await store.reset('anna');
    expect(await remaining()).toEqual([1]);
  });

  test('a reservation made before a change cannot be cancelled after it', async () => {
    const { store, set, acquire, remaining } = await started();
    await acquire(5);
    const verdict = await store.acquire(ask({ calls: 2, shop: 0 }), WHENEVER);
    await set({ calls: perSecond(3, { burst: 7 }) });
    expect(verdict.granted && (await store.cancel(verdict.receipt))).toBe(false);
    expect(await remaining()).toEqual([0]);
  });

  test('reset puts code’s limits in force again; where there is nothing to reset, nothing changes', async () => {
    const { store, set, code } = await started();
    expect(await store.reset('ben')).toMatchObject({ version: 1 });
    await set({ calls: perSecond(7, { burst: 7 }), day: perSecond(1) });
    expect(await store.reset('ben')).toMatchObject({ version: 3, operator: [], who: 'ben' });
    expect(await store.limits()).toEqual(code);
    expect(await store.reset('ben')).toMatchObject({ version: 3 });
  });

  test('the history says who changed what and when, newest first', async () => {
    const { store, set, advanceUs } = await started();
    await set({ calls: perSecond(7, { burst: 7 }) });
    advanceUs(90 * SECOND);
    await store.reset('ben');
    const { history } = await store.configuration();
    expect(history.map(({ atUs, ...change }) => change)).toEqual([
      { version: 3, who: 'ben', what: ['calls (operator): 7 per second, burst 7 → none'] },
      { version: 2, who: 'anna', what: ['calls (operator): none → 7 per second, burst 7'] },
    ]);
    expect(history[0]!.atUs - history[1]!.atUs).toBe(90 * SECOND);
  });

  test('the history keeps the last 100 changes', async () => {
    const { store, set } = await started();
    for (let rate = 1; rate <= 103; rate++) await set({ calls: perSecond(rate, { burst: 1 }) });
    const { history, version } = await store.configuration();
    expect(version).toBe(104);
    expect(history).toHaveLength(100);
    expect(history[0]).toMatchObject({ version: 104 });
    expect(history[99]).toMatchObject({ version: 5 });
  });

  test('changes made at the same time are all made', async () => {
    const { store, set } = await started();
    const names = ['a', 'b', 'c', 'd', 'e'];
    const made = await Promise.all(names.map((name) => set({ [name]: perSecond(1) }, name)));
    expect(made.map(({ version }) => version)).toEqual([2, 3, 4, 5, 6]);
    const { limits, history } = await store.configuration();
    expect(limits.map(({ name }) => name)).toEqual(['calls', 'shop', ...names]);
    expect(history.map(({ who }) => who)).toEqual([...names].reverse());
  });

  describe('a cold start', () => {
    const day = 86_400;
    const limits = { calls: perSecond(10, { burst: 5 }) };

    test('stays one under limits that come before the buckets have filled', async () => {
      const { set, remaining, advanceUs } = await started({ limits, coldStart: 'empty' });
      advanceUs(0.4 * SECOND);
      await set({ calls: perSecond(20, { burst: 20 }) });
      expect(await remaining()).toEqual([8]);
    });

    test('is over once they have filled: a slower limit does not find them empty again', async () => {
      const { set, remaining, advanceUs } = await started({ limits, coldStart: 'empty' });
      advanceUs(0.5 * SECOND);
      await set({ calls: { rate: 1, periodMs: day * 1_000, burst: 5 } });
      expect(await remaining()).toEqual([5]);
    });
  });

  describe('who subscribes', () => {
    test('is told of each change once, with the limits in force, until it leaves', async () => {
      const { store, set } = await started();
      const heard: StoreMessage[] = [];
      const leave = store.subscribe((message) => heard.push(message));
      store.subscribe(() => {
        store.subscribe(() => {});
      });
      await set({ calls: perSecond(7, { burst: 7 }) });
      await set({ calls: perSecond(7, { burst: 7 }) });
      await store.reset('ben');
      await eventually(async () => (heard.length >= 2 ? true : undefined));
      leave();
      leave();
      await set({ calls: perSecond(8, { burst: 8 }) });
      expect(heard).toMatchObject([
        { kind: 'configured', version: 2, who: 'anna', limits: [{ name: 'calls', burst: 7 }, {}] },
        { kind: 'configured', version: 3, who: 'ben', limits: [{ name: 'calls', burst: 5 }, {}] },
      ]);
    });

    test('is told nothing after close', async () => {
      const { store } = await started();
      await store.close();
      const leave = store.subscribe(() => expect.unreachable());
      leave();
    });
  });

  test('after close every call rejects with a GovernorClosedError', async () => {
    const { store, set } = await started();
    await store.close();
    const all = [set({ calls: perSecond(1) }), store.reset('anna'), store.configuration()];
    for (const call of await Promise.allSettled(all)) {
      expect(call).toMatchObject({ status: 'rejected', reason: expect.any(GovernorClosedError) });
    }
  });
}
