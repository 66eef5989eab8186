import { describe, expect, test } from 'vitest';
import type { ConfigureOptions, SteeringOptions } from '../../../src/core/calls/steer.ts';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import type { ConfiguredEvent } from '../../../src/core/ports/events.ts';
import { memoryGovernor } from '../../../src/testing/memory-governor.ts';

const limits = { calls: perSecond(10, { burst: 5 }), shop: perSecond(2, { burst: 2, by: 'shop' }) };
const slow = perSecond(1, { burst: 1 });
const started = () => memoryGovernor({ name: 'steered', limits });

describe('configure', () => {
  test('is in force with the next decision, and shown as it was written', async () => {
    const { governor } = started();
    const view = await governor.configure({ limits: { calls: slow } }, { who: 'anna' });
    expect(view).toEqual({
      version: 2,
      revision: null,
      limits: {
        calls: { kind: 'rate', rate: 1, periodMs: 1_000, burst: 1 },
        shop: { kind: 'rate', rate: 2, periodMs: 1_000, burst: 2, by: 'shop' },
      },
      operator: { calls: { kind: 'rate', rate: 1, periodMs: 1_000, burst: 1 } },
    });
    expect(await governor.allow()).toMatchObject({ allowed: true });
    expect(await governor.allow()).toMatchObject({ allowed: false, limit: 'calls', retryAfterMs: 1_000 });
  });

  test('of limits that `configuration` showed changes nothing', async () => {
    const { governor } = started();
    const { limits: shown } = await governor.configure({ limits: { calls: slow } });
    const { operator } = await governor.configure({ limits: shown });
    expect(operator).toEqual(shown);
    expect((await governor.configuration()).limits).toEqual(shown);
  });

  test('keeps what was used, in tokens', async () => {
    const { governor } = started();
    await governor.allowN({ calls: 4, shop: 0 });
    await governor.configure({ limits: { calls: perSecond(3, { burst: 7 }) } });
    expect(await governor.peek()).toMatchObject([{ limit: 'calls', remaining: 3 }, { limit: 'shop' }]);
  });

  test('leaves a reservation that starts within a second as it is: nothing of it is given back', async () => {
    const { governor } = started();
    await governor.waitN({ calls: 5, shop: 0 });
    const reserved = await governor.reserveN({ calls: 2, shop: 0 });
    await governor.configure({ limits: { calls: perSecond(3, { burst: 7 }) } });
    expect(reserved.allowed && reserved.stands()).toBe(true);
    expect(reserved.allowed && (await reserved.cancel())).toBe(false);
    expect(await governor.peek()).toMatchObject([{ remaining: 0, granted: 7 }, {}]);
  });

  test.for<[string, unknown, string]>([
    ['nothing', undefined, 'options'],
    ['a list', [], 'options'],
    ['no limits', {}, 'limits'],
    ['an empty list of limits', { limits: {} }, 'limits'],
    ['an invalid limit', { limits: { calls: { rate: -1, periodMs: 1_000 } } }, 'limits.calls.rate'],
    ['a misspelt name', { limit: { calls: slow } }, 'limit'],
  ])('of %s is refused, and changes nothing', async ([, change, option]) => {
    const { governor } = started();
    await expect(governor.configure(change as ConfigureOptions)).rejects.toMatchObject({
      code: 'FLYBALL_INVALID_OPTION',
      option,
    });
    expect((await governor.configuration()).version).toBe(1);
  });

  test.for<[unknown, string]>([
    [{ who: '' }, 'who'],
    [{ who: 7 }, 'who'],
    [{ who: 'a\nb' }, 'who'],
    [{ who: 'x'.repeat(201) }, 'who'],
    [{ by: 'anna' }, 'options.by'],
    ['anna', 'options'],
  ])('by %j is refused', async ([options, option]) => {
    const { governor } = started();
    const given = options as SteeringOptions;
    await expect(governor.configure({ limits }, given)).rejects.toMatchObject({ option });
    await expect(governor.reset(given)).rejects.toMatchObject({ option });
  });
});

test('reset puts code’s limits in force again, and the history tells who did what, and when', async () => {
  const { governor, clock } = started();
  await governor.configure({ limits: { calls: slow } }, { who: 'anna' });
  await clock.advance(1_500);
  expect(await governor.reset({ who: 'ben' })).toMatchObject({ version: 3, operator: {} });
  expect(await governor.limits()).toMatchObject([{ name: 'calls', burst: 5 }, { name: 'shop' }]);
  const { history } = await governor.configuration();
  expect(history).toEqual([
    {
      version: 3,
      atMs: clock.wallMs(),
      who: 'ben',
      what: ['calls (operator): 1 per second, burst 1 → none'],
    },
    {
      version: 2,
      atMs: clock.wallMs() - 1_500,
      who: 'anna',
      what: ['calls (operator): none → 1 per second, burst 1'],
    },
  ]);
});

describe('on("configured")', () => {
  test('tells of each change, and no longer once removed or closed', async () => {
    const { governor } = started();
    const heard: ConfiguredEvent[] = [];
    const remove = governor.on('configured', (event) => heard.push(event));
    governor.on('configured', (event) => heard.push(event));
    await governor.configure({ limits: { calls: slow } }, { who: 'anna' });
    expect(heard).toHaveLength(2);
    expect(heard[0]).toMatchObject({ version: 2, who: 'anna', limits: [{ burst: 1 }, { name: 'shop' }] });
    remove();
    await governor.reset();
    expect(heard).toHaveLength(3);
    await governor.close();
    expect(() => governor.on('configured', () => {})).toThrow(/closed/);
  });
});

test('after close, steering rejects with a GovernorClosedError', async () => {
  const { governor } = started();
  await governor.close();
  for (const call of [governor.configure({ limits }), governor.reset(), governor.configuration()]) {
    await expect(call).rejects.toMatchObject({ code: 'FLYBALL_GOVERNOR_CLOSED' });
  }
});

describe('the option revision', () => {
  test('is a whole number from 1; left out, there is none', () => {
    expect(parseGovernorOptions({ name: 'a', limits }).revision).toBe(0);
    expect(parseGovernorOptions({ name: 'a', limits, revision: undefined }).revision).toBe(0);
    expect(parseGovernorOptions({ name: 'a', limits, revision: 1_700_000_000 }).revision).toBe(1_700_000_000);
  });

  test.for([0, -1, 1.5, Number.NaN, 2 ** 53, '7', null])('is refused if it is %s', (revision) => {
    expect(() => parseGovernorOptions({ name: 'a', limits, revision })).toThrow(/^revision: /);
  });

  test('is shown', async () => {
    const { governor } = memoryGovernor({ name: 'steered', limits, revision: 7 });
    expect(await governor.configuration()).toMatchObject({ revision: 7, history: [] });
  });
});
