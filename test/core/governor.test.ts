import { describe, expect, it } from 'vitest';
import { type AskTerms, deskOf } from '../../src/core/calls/desk.ts';
import {
  isCostExceedsBurstError,
  isGovernorClosedError,
  isInvalidOptionError,
} from '../../src/core/errors.ts';
import type { Governor } from '../../src/core/governor.ts';
import { perDay, perHour, perSecond } from '../../src/core/limits/rate.ts';
import { governed } from './support/governed.ts';

const LIMITS = {
  calls: perSecond(10, { burst: 5 }),
  shop: perSecond(2, { burst: 4, by: 'shop' }),
};
const acme = { keys: { shop: 'acme' } };

describe('allow', () => {
  it('takes the tokens, or says which limit refused, why, and when to come back', async () => {
    const { governor } = governed(LIMITS);
    expect(await governor.allowN(4, acme)).toMatchObject({ allowed: true });
    expect(await governor.allow(acme)).toEqual({
      allowed: false,
      limit: 'shop',
      keyed: true,
      reason: 'rate',
      retryAfterMs: 500,
      hasTurn: false,
    });
    expect(await governor.allow({ keys: { shop: 'other' } })).toMatchObject({ allowed: true });
    expect(await governor.allow({ keys: { shop: 'third' } })).toMatchObject({
      limit: 'calls',
      retryAfterMs: 100,
    });
  });

  it('succeeds at the time it gave, rounded up to a millisecond', async () => {
    const { governor, clock } = governed({ calls: perSecond(3, { burst: 1 }) });
    await governor.allow();
    expect(await governor.allow()).toMatchObject({ allowed: false, retryAfterMs: 334 });
    await clock.advance(333);
    expect(await governor.allow()).toMatchObject({ allowed: false, retryAfterMs: 1 });
    await clock.advance(1);
    expect(await governor.allow()).toMatchObject({ allowed: true });
  });
});

describe('reserve', () => {
  it('takes the tokens now, to be used later', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    const starts = [];
    for (let n = 0; n < 3; n++) {
      const reservation = await governor.reserve();
      if (reservation.allowed)
        starts.push([reservation.startsInMs, reservation.startsAtMonoMs - clock.monoMs()]);
    }
    expect(starts).toEqual([
      [0, 0],
      [100, 100],
      [200, 200],
    ]);
  });

  it('gives them back once, however often it is cancelled', async () => {
    const { governor } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const first = await governor.reserve();
    if (!first.allowed) throw new Error('refused');
    expect(await Promise.all([first.cancel(), first.cancel()])).toEqual([true, true]);
    // The same amount was granted again since; a second refund would give away what is another’s.
    const second = await governor.reserve();
    expect(await first.cancel()).toBe(true);
    expect(second).toMatchObject({ startsInMs: 100 });
    expect(await governor.reserve()).toMatchObject({ startsInMs: 200 });
  });

  it('gives nothing back of what has started', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    const now = await governor.reserve();
    const later = await governor.reserve();
    await clock.advance(100);
    for (const reservation of [later, now])
      expect(reservation.allowed && (await reservation.cancel())).toBe(false);
    expect(await governor.peek()).toMatchObject([{ granted: 2, remaining: 0 }]);
  });

  it('gives a place in the line to who asks for one, and to nobody else', async () => {
    const { governor } = governed(LIMITS);
    await governor.allowN(4, acme);
    expect(await governor.reserveN(1, acme)).toMatchObject({
      allowed: false,
      hasTurn: false,
      retryAfterMs: 500,
    });
    const ask = (terms: AskTerms) =>
      deskOf(governor)
        .attempts()
        .begin({ ...acme, cost: 1 })
        .ask(terms);
    const place = { turns: 'keyed' } as const;
    expect(await ask(place)).toMatchObject({ hasTurn: true, retryAfterMs: 500 });
    expect(await ask(place)).toMatchObject({
      hasTurn: true,
      retryAfterMs: 1_000,
      reason: 'line',
    });
    expect(await ask({ ...place, maxTurnMs: 1_499 })).toMatchObject({ hasTurn: false });
    expect(await governor.peek(acme)).toMatchObject([
      { lineMs: 0 },
      { limit: 'shop', lineMs: 1_500, granted: 4 },
    ]);
  });

  it('lets who returns at his place in', async () => {
    const { governor, clock } = governed(LIMITS);
    await governor.allowN(4, acme);
    const attempts = deskOf(governor).attempts();
    await attempts.begin({ ...acme, cost: 1 }).ask({ turns: 'keyed' });
    await clock.advance(500);
    expect(await governor.reserveN(1, acme)).toMatchObject({ allowed: false, reason: 'line' });
    const returning = attempts.begin({ ...acme, cost: 1, returning: true });
    expect(await returning.ask({})).toMatchObject({ allowed: true, startsInMs: 0 });
  });
});

describe('run', () => {
  it('waits, runs the work with its grant, and returns its result', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 2 }) });
    await governor.allowN(2);
    const result = governor.run({ cost: 2, maxWaitMs: 1_000 }, ({ waitedMs }) => ({ waitedMs }));
    await clock.advance(200);
    expect(await result).toEqual({ waitedMs: 200 });
  });

  it('has cost 1 by default and passes on what the work throws; the token is spent', async () => {
    const { governor } = governed({ calls: perSecond(10, { burst: 2 }) });
    const broken = new Error('broken');
    await expect(
      governor.run({}, () => {
        throw broken;
      }),
    ).rejects.toBe(broken);
    expect(await governor.peek()).toMatchObject([{ remaining: 1, granted: 1 }]);
  });

  it('does not run work whose wait was refused', async () => {
    const { governor } = governed({ calls: perHour(1, { burst: 1 }) });
    await governor.allow();
    let ran = false;
    const run = governor.run({ maxWaitMs: 10 }, () => {
      ran = true;
    });
    await expect(run).rejects.toMatchObject({ code: 'FLYBALL_WAIT_TOO_LONG', retryAfterMs: 3_600_000 });
    expect(ran).toBe(false);
  });
});

describe('force', () => {
  it('lets one pass by hand, and who comes after waits for it', async () => {
    const { governor } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    await governor.forceN(1);
    expect(await governor.allow()).toMatchObject({ allowed: false, retryAfterMs: 200 });
  });

  it('is refused, and charges nothing, where the limits would owe more than is exact', async () => {
    const { governor } = governed({ daily: perDay(1, { burst: 26_000 }) });
    await governor.forceN(26_000);
    await governor.forceN(26_000);
    await expect(governor.forceN(26_000)).rejects.toSatisfy(isInvalidOptionError);
    expect(await governor.peek()).toMatchObject([{ granted: 52_000 }]);
  });
});

describe('peek', () => {
  it('shows what each limit of a request holds, and takes nothing', async () => {
    const { governor, store } = governed(LIMITS);
    await governor.allowN(3, acme);
    const seen = [
      {
        limit: 'calls',
        kind: 'rate',
        key: null,
        remaining: 2,
        burst: 5,
        effective: 10,
        waitMs: 100,
        lineMs: 0,
        pausedMs: 0,
        granted: 3,
        refused: 0,
      },
      {
        limit: 'shop',
        kind: 'rate',
        key: 'acme',
        remaining: 1,
        burst: 4,
        effective: 2,
        waitMs: 1_000,
        lineMs: 0,
        pausedMs: 0,
        granted: 3,
        refused: 0,
      },
    ];
    for (let n = 0; n < 3; n++) expect(await governor.peek({ ...acme, cost: 3 })).toEqual(seen);
    expect(await governor.peek()).toMatchObject([{}, { key: '', remaining: 4 }]);
    expect(store.states.size).toBe(2);
  });
});

it('tells the limits in force', async () => {
  const { governor } = governed(LIMITS);
  expect(await governor.limits()).toMatchObject([
    { name: 'calls', by: null, rate: 1, periodUs: 100_000, burst: 5 },
    { name: 'shop', by: 'shop', rate: 1, periodUs: 500_000, burst: 4 },
  ]);
});

// https://github.com/OptimalBits/bull/issues/998: a misplaced option was, silently, no limit.
describe('a request that is wrong', () => {
  const calls: [string, (governor: Governor, options: object) => Promise<unknown>][] = [
    ['allowN', (governor, options) => governor.allowN(1, options)],
    ['reserveN', (governor, options) => governor.reserveN(1, options)],
    ['waitN', (governor, options) => governor.waitN(1, options)],
    ['run', (governor, options) => governor.run(options, () => {})],
    ['forceN', (governor, options) => governor.forceN(1, options)],
    ['peek', (governor, options) => governor.peek(options)],
  ];

  it.each(calls)('%s refuses an option it does not know, before anything is taken', async (_, call) => {
    const { governor, store } = governed(LIMITS);
    await expect(call(governor, { key: { shop: 'acme' } })).rejects.toThrow('did you mean "keys"?');
    await expect(call(governor, { keys: { shops: 'acme' } })).rejects.toThrow('did you mean "shop"?');
    await expect(call(governor, null as unknown as object)).rejects.toThrow();
    expect(store.states.size).toBe(0);
  });

  it.each([
    ['maxWaitMs', Number.NaN],
    ['maxWaitMs', -1],
    ['maxWaitMs', '5'],
  ])('reserveN refuses %s: %s', async (option, value) => {
    const { governor, store } = governed(LIMITS);
    await expect(governor.reserveN(1, { [option]: value })).rejects.toMatchObject({
      code: 'FLYBALL_INVALID_OPTION',
      option,
      received: value,
    });
    expect(store.states.size).toBe(0);
  });

  it('waitN refuses a signal that is none', async () => {
    const { governor } = governed(LIMITS);
    const signal = { aborted: false } as AbortSignal;
    await expect(governor.waitN(1, { signal })).rejects.toMatchObject({ option: 'signal' });
  });

  it('has a cost that can never pass: an error at once, never a wait', async () => {
    const { governor, store } = governed(LIMITS);
    for (const call of [governor.allowN(5), governor.reserveN(5), governor.waitN(5), governor.forceN(5)]) {
      await expect(call).rejects.toSatisfy(isCostExceedsBurstError);
    }
    expect(store.states.size).toBe(0);
  });
});

it('refuses every call once it is closed', async () => {
  const { governor } = governed(LIMITS);
  await governor.close();
  const calls = [
    governor.allow(),
    governor.reserve(),
    governor.wait(),
    governor.run({}, () => {}),
    governor.forceN(1),
    governor.peek(),
    governor.limits(),
  ];
  for (const call of calls) await expect(call).rejects.toSatisfy(isGovernorClosedError);
});

it('starts empty if told to, and fills at its rate', async () => {
  const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) }, { coldStart: 'empty' });
  expect(await governor.allow()).toMatchObject({ allowed: false, retryAfterMs: 100 });
  await clock.advance(250);
  expect(await governor.peek()).toMatchObject([{ remaining: 2 }]);
  expect(await governor.allowN(3)).toMatchObject({ allowed: false, retryAfterMs: 50 });
  await clock.advance(10_000);
  expect(await governor.peek()).toMatchObject([{ remaining: 5 }]);
});
